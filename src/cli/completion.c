// tranche completion: the script of a shell, which asks the program itself for what may
// come next.
#include "cli/complete.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 1024 };

// Bash hands on words that it has split at "=" and ":": these are joined again, and
// candidates are cut to what stands behind the last of these characters.
static const char bash_script[] =
    "# Completion of tranche for bash.\n"
    "_tranche() {\n"
    "    local word doc line lead i\n"
    "    local -a words=()\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((${#words[@]})) && [[ $word == [=:]* || ${words[-1]} == *[=:] ]]; "
    "then\n"
    "            words[-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    word=${words[-1]}\n"
    "    lead=${word%\"${word##*[=:]}\"}\n"
    "    word=${word#\"$lead\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r line doc; do\n"
    "        case $line in\n"
    "        :open) compopt -o nospace ;;\n"
    "        :folders)\n"
    "            compopt -o filenames\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "
    "\"$word\")\n"
    "            ;;\n"
    "        :files*)\n"
    "            compopt -o filenames\n"
    "            doc=${line#:files}\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(\n"
    "                compgen -f -X \"!*${doc# }\" -- \"$word\"\n"
    "                [[ -z $doc ]] || compgen -d -- \"$word\"\n"
    "            )\n"
    "            ;;\n"
    "        *) COMPREPLY+=(\"${line#\"$lead\"}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion bash -- \"${words[@]}\" "
    "2>/dev/null)\n"
    "}\n"
    "complete -F _tranche tranche\n";

static const char zsh_script[] =
    "#compdef tranche\n"
    "# Completion of tranche for zsh.\n"
    "_tranche() {\n"
    "    local line\n"
    "    local -a names shown open\n"
    "    for line in \"${(@f)$($words[1] completion zsh -- "
    "\"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "        (:open) open=(-S '') ;;\n"
    "        (:folders) compset -P '*='; _files -/ ;;\n"
    "        (:files) compset -P '*='; _files ;;\n"
    "        (:files*) compset -P '*='; _files -g \"*${line#:files }(-.)\" ;;\n"
    "        (?*)\n"
    "            names+=(\"${line%%$'\\t'*}\")\n"
    "            shown+=(\"${line%%$'\\t'*}  ${line#*$'\\t'}\")\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "    if (($#names)); then\n"
    "        compadd $open -l -d shown -- $names\n"
    "    fi\n"
    "}\n"
    "if [[ $funcstack[1] == _tranche ]]; then\n"
    "    _tranche \"$@\"\n"
    "else\n"
    "    compdef _tranche tranche\n"
    "fi\n";

// fish itself puts no space behind a word that ends with "=".
static const char fish_script[] =
    "# Completion of tranche for fish.\n"
    "function __tranche_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    for line in ($words[1] completion fish -- $words[2..-1] \"$word\" "
    "2>/dev/null)\n"
    "        switch $line\n"
    "            case :open\n"
    "            case :folders\n"
    "                __fish_complete_directories $word\n"
    "            case :files\n"
    "                __fish_complete_path $word\n"
    "            case ':files *'\n"
    "                set -l end (string escape --style=regex (string sub -s 8 $line))\n"
    "                __fish_complete_path $word |\n"
    "                    string match -re \"(?:$end|/)(?:\\t|\\$)\"\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c tranche -f -a '(__tranche_words)'\n";

static const struct {
    const char *shell, *script;
} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

enum { SHELLS = sizeof scripts / sizeof *scripts };

static const char *script_of(const char *shell, tr_error *err) {
    const char *names[SHELLS];
    for (size_t i = 0; i < SHELLS; i++) {
        if (strcmp(scripts[i].shell, shell) == 0) {
            return scripts[i].script;
        }
        names[i] = scripts[i].shell;
    }
    const char *nearest = tr_nearest(shell, names, SHELLS);
    tr_fail(err, TR_USAGE, "completion %.100s: expected bash, zsh or fish%s%s%s", shell,
            nearest ? "; did you mean " : "", nearest ? nearest : "",
            nearest ? "?" : "");
    return NULL;
}

int cli_completion(const cli_command *command, int argc, char **argv) {
    const char *words[WORDS_MAX];
    tr_error err = {0};
    int exit_status;
    cli_operands operands = {words, 1, WORDS_MAX, 0};
    if (!cli_parse(command, NULL, 0, argc, argv, &operands, &exit_status)) {
        return exit_status;
    }
    const char *script = script_of(words[0], &err);
    if (!script) {
        return cli_fail(&err);
    }
    if (operands.count > 1) {
        cli_complete(words + 1, operands.count - 1, stdout);
    } else {
        fputs(script, stdout);
    }
    return cli_end(TR_OK);
}
