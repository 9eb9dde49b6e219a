# man_page.awk: a page of docs/ as a manual page.
#
#     awk -v title=tranche-out-folder -v section=5 -v about=WORDS -v version=1.0.0 \
#         -f tools/man_page.awk docs/checkpoints.md
#
# It knows what these pages consist of: headings, paragraphs, lists of "- ", code that is
# indented by four columns, tables.
function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text
}

# Text with its `code`, **words** and [links](to.md).
function inline(text,    out, part) {
    while (match(text, /`[^`]*`|\*\*[^*]*\*\*|\[[^][]*\]\([^)]*\)/)) {
        part = substr(text, RSTART, RLENGTH)
        out = out escaped(substr(text, 1, RSTART - 1))
        text = substr(text, RSTART + RLENGTH)
        if (part ~ /^`/) {
            out = out "\\fB" escaped(substr(part, 2, length(part) - 2)) "\\fR"
        } else if (part ~ /^\*/) {
            out = out "\\fB" escaped(substr(part, 3, length(part) - 4)) "\\fR"
        } else {
            sub(/^\[/, "", part)
            sub(/\]\(.*/, "", part)
            text = part text # which may hold code
        }
    }
    return out escaped(text)
}

# A line of roff, which must not be taken for a request.
function put(line) {
    if (line ~ /^[.']/) line = "\\&" line
    print line
}

# Ends the paragraph, or the point of a list, that has been gathered.
function flush() {
    if (words != "") put(inline(words))
    words = ""
}

# A heading begins a paragraph itself.
function paragraph() {
    if (!fresh) print ".PP"
    fresh = 0
}

function end_code() {
    if (code) print ".fi\n.RE"
    code = 0
}

function begin_code() {
    flush()
    if (!code) {
        paragraph()
        print ".RS 4\n.nf"
    }
    code = 1
}

function row(line,    cells, count, text, i) {
    flush()
    sub(/^\| */, "", line)
    sub(/ *\|$/, "", line)
    count = split(line, cells, / *\| */)
    if (!table++) return   # the head
    if (line ~ /^[-|: ]+$/) return
    print ".TP"
    fresh = 0
    put(inline(cells[1]))
    for (i = 2; i <= count; i++) text = text (i > 2 ? "; " : "") cells[i]
    put(inline(text))
}

function heading(request, line) {
    flush()
    sub(/^#+ +/, "", line)
    print request " \"" inline(line) "\""
    fresh = 1
}

BEGIN {
    print ".TH \"" toupper(title) "\" " section " \"\" \"tranche " version "\" \"Tranche\""
    print ".SH \"NAME\"\n" escaped(title) " \\- " escaped(about)
    print ".SH \"DESCRIPTION\""
    fresh = blank = 1
}
/^$/ {
    if (code) waiting++
    else flush()
    table = 0
    blank = 1
    next
}
/^    / && (code || blank) && (!list || /^      /) {
    begin_code()
    for (; waiting > 0; waiting--) print ""
    line = $0
    sub(list ? "^      " : "^    ", "", line)
    put(escaped(line))
    blank = 0
    next
}
{
    end_code()
    waiting = 0
}
/^# / { next }
/^## / { list = 0; heading(".SH", $0); blank = 0; next }
/^###+ / { list = 0; heading(".SS", $0); blank = 0; next }
/^\|/ { row($0); blank = 0; next }
/^- / {
    flush()
    print ".IP \\(bu 2"
    fresh = 0
    words = substr($0, 3)
    list = 1
    blank = 0
    next
}
{
    if (words == "") {
        if (/^ /) print ".IP \"\" 2"
        else { paragraph(); list = 0 }
    }
    line = $0
    sub(/^ +/, "", line)
    words = words (words == "" ? "" : " ") line
    blank = 0
}
END {
    flush()
    end_code()
    print ".SH \"SEE ALSO\"\n\\fBtranche\\fR(1), \\fBtranche\\-train\\fR(1), \\fBtranche\\-run\\-file\\fR(5)"
}
