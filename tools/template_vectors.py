#!/usr/bin/env python3
"""template_vectors.py: writes tests/data/templates.json.

Renders the templates below by jinja2 as transformers configures it: each is a case
[template, variables, text, spans], or [template, variables, null] where jinja2 refuses.
Spans are those of {% generation %}, in bytes. Needs transformers.
"""
import json
import os

from transformers.utils import chat_template_utils as utils

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

VARIABLES = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": " Hé <b>'x'</b>\n"},
        {"role": "assistant", "content": "漢字 \"q\" \\ \u0001", "tool_calls": [
            {"function": {"name": "f", "arguments": {"a": 1, "b": [True, None, 1.5]}}}]},
    ],
    "tools": None, "n": 7, "x": 2.5, "big": 1e22, "small": 1e-7, "empty": [], "s": "a,b,,c",
    "text": "one two\nthree", "d": {"b": 2, "a": 1, "C": 3}, "items": [3, 1, 2],
    "add_generation_prompt": True, "eos_token": "</s>",
}

PRINTED = """
1 + 2 * 3 - 4 // 3 ** 1
7 / 2; 7 // -2; -7 % 3; 2 ** 10; -2 ** 2; 1.5 % 1; 7.5 // 2; big; small; x; 1e16; 123456789.125; 0.1 + 0.2; -0.0
1 if n > 5 else 2; 1 if n > 9; (1 if none else 'z'); n > 1 and n < 9 and 'both'; 0 or 'or'; not n; not not n
1 < 2 < 3; 3 > 2 > 2; 1 == 1.0; 'a' < 'b'; [1, 2] < [1, 3]; true == 1; none == none; 'a' == 1; 1 != 2
'a' 'b' "c"; 'tab\\t\\x41\\u00e9\\'q'; "\\n" ; 'a' ~ 1 ~ none ~ true ~ x; 'ab' * 3; [1] + [2]; 'é'|length
n is defined; nope is defined; nope is undefined; none is none; n is number; true is number; true is integer
x is float; 'a' is string; d is mapping; items is sequence; 'a' is iterable; nope is iterable; n is not string
n is odd; n is even; n is divisibleby 7; n is divisibleby(2); true is true; 1 is true; false is false; n is eq 7
n is in [7]; 'a' in 'abc'; 'b' not in 'abc'; 'a' in d; 3 in items; n is gt 3; n is boolean; range is callable
messages[0].content; messages[0]['role']; messages[-1].role; messages[9]; nope; messages[0].nope; d.items is callable
d['nope'] is defined; d.pop is defined; d['keys'] is defined; items[0]; items.0; text[0]; text[-1]; text[99]
text[1:3]; text[:3]; text[-5:]; text[::-1]; text[::2]; items[::-1]; items[1:]; items[:-1]; messages[1:][0].role; text[5:2]
'héllo'[1:3]; (1, 2); (1,); [1, 'a', "it's", none, {'k': 1.0}]; {'a': 1, 'b': [2]}; {}; []; ''
s.split(','); s.split(',', 1); text.split(); text.split(none, 1); s.rsplit(',', 1); text.splitlines(); ' a '.strip() ~ '|'
'xxaxx'.strip('x'); 'xxa'.lstrip('x'); 'axx'.rstrip('x'); ' a'.lstrip(); text.startswith('one'); text.endswith(('x', 'three'))
text.replace('o', '0'); text.replace('o', '0', 1); 'ab'.replace('', '-'); text.upper(); 'ÉÀ'.lower(); 'aB cD'.title(); 'aB cD'.capitalize()
text.find('two'); text.find('z'); text.count('e'); '12'.isdigit(); '-'.join(['a', 'b']); 'abc'.removeprefix('a'); 'abc'.removesuffix('c')
'{1} {0} {k}'.format(1, 2, k=3); '{} {}'.format(1, 2); '{} {1}'.format(1, 2); '{{}}'.format(); d.get('a'); d.get('z'); d.get('z', 5); d.keys()|list; d.values()|list; items.index(1)
' a '|trim ~ '|'; text|upper; text|lower; text|length; items|length; d|length; nope|length; s|replace(',', ';'); items|join('-')
nope|default('x'); ''|default('x'); ''|default('x', true); none|d('y'); n|string ~ 'z'; '12'|int; 'a'|int; '1.5'|float; 1.9|int; -3|abs
items|sort; items|sort(reverse=true); d|dictsort; d|dictsort(true); d|dictsort(by='value'); items|first; items|last; empty|first; items|reverse|list
items|min; items|max; items|sum; [1, 1, 2]|unique|list; ['b', 'A']|sort; messages|map(attribute='role')|join(','); ['a', 'b']|map('upper')|list
messages|selectattr('role', 'equalto', 'user')|list|length; messages|rejectattr('tool_calls', 'defined')|map(attribute='role')|list; [0, 1]|select|list; [1, 2, 3]|reject('odd')|list
none|selectattr('a')|list; d|items|list; text|indent; text|indent(2, true); text|indent('> '); 'a\\n\\nb'|indent(2, blank=true); d|list
messages[1].content|tojson; d|tojson; d|tojson(indent=2); messages|tojson(ensure_ascii=true); d|tojson(sort_keys=true); d|tojson(separators=(',', ':')); []|tojson(indent=1); [1, 1.0, none, true]|tojson
'<a>'|safe + '<b>'; '<b>' + '<a>'|safe; '<&>"\\''|e; ('<a>'|safe) ~ '<b>'; range(3)|list; range(1, 7, 2)|list; range(3, 0, -1)|list; dict(a=1)
namespace(a=1).a; loop; x is x; 'a' is in 'abc'; ('a', 'b')[1]; [[1, 2], [3]][0][1]; {'a': {'b': 1}}.a.b; 1_0
range(3); range(1, 8, 2); range(5)[1:3]; range(5)[::-1]; range(3)[-1]; range(3) == range(0, 3, 1); range(3) == [0, 1, 2]; [range(2)]; range(4).stop; range(9).index(3); n.real; n.imag; x.imag; true.numerator; n.denominator; n.nope; 's'.nope
'inf'|float; '-Infinity'|float; 'nan'|float; '1_000'|int; '1__0'|int(3); ' +7 '|int; '1e3'|int; 'inf'|int; '.5'|float; '5.'|float; '1_0.5e1_0'|float; 'ff'|int(0, 16); '0x1f'|int(base=16); '0b11'|int(0, 0); '010'|int; '010'|int(5, 0); none|int(4); [1]|float(2); 'x'|int('no')
2.5|round; 3.5|round; 2.675|round(2); 7|round; 2.1|round(0, 'ceil'); -2.1|round(method='floor'); 1.25|round(1, 'ceil'); 1e22|round(2); 0.5|round; -0.4|round; n|round(3)
"they're bill's"|title; "they're bill's".title(); 'a-b_c (d [e {f <g'|title; 'x1y 2z'|title; 'x1y 2z'.title(); 'aBc'.swapcase(); 'ab'|center(7) ~ '|'; 'abc'.center(6, '*'); 'ab'.center(5, '*'); 'a'.ljust(3, '.') ; 'a'.rjust(3); '-5'.zfill(5); 'é'.zfill(3)
text.rfind('e'); text.rfind('z'); text.find('e', 3); text.find('', 99); text.find('t', -5); text.rfind('o', 0, 3); text.index('t'); text.rindex('e'); text.count('e', 1); s.partition(','); s.rpartition(','); s.partition('z'); s.rpartition('z'); 'aaa'.count('aa')
'abc'.isalpha(); 'ab1'.isalpha(); 'é漢'.isalpha(); ''.isalpha(); 'ab1'.isalnum(); '12'.isnumeric(); '²'.isnumeric(); '12'.isdecimal(); ' \t'.isspace(); 'AB1'.isupper(); 'ab1'.islower(); '1'.islower(); 'Ab Cd'.istitle(); 'aB'.istitle(); 'é'.isascii(); '\u00a0'.isspace(); 'é'.isdigit()
'%s and %d' % ('a', 2); '%5.2f|%-6s|%+d|%05d|% d' % (x, 'ab', 3, -42, 7); '%x %X %o %c %c' % (255, 255, 8, 'a', 66); '%r %s' % ('a', none); '%(a)s-%(b)03d' % d; '100%%' % (); '%s' % 'x'; '%s' % [1, 2]; '%.2s|%5.1s|' % ('abc', 'xyz'); '%e %g %G' % (1234.5, 0.00001, 1e20); '%s' % (1, 2); '%d' % 'x'; '%s %s' % 'a'; '%d' % 2.9; '%i' % true; 'x' % {'a': 1}; 'x' % 1; '%(z)s' % d; '%z' % 1; '%s|%s' | format('a', 1); '%(a)s' | format(a=2)
[1, 2] * 2; 2 * [0]; (1,) * 3; [1] * 0; [1] * -1; 7.5 // -2; -7.5 % 2; 5.5 % -2; 1e308 * 10; 0.0 // 3; -1 // 1e300; 2 ** -1; 0 ** -1; 9007199254740993 == 9007199254740992.0
('<b>'|safe).upper() + '<'; ['<b>'|safe|trim]|first + '<'; ('<b>'|safe)[1:] + '<'; '<'|e|upper ~ '<'; 'x'|indent(1, true); 5|indent; n[1:2]; d[1:]; d.keys()[:1]; n is none(1); d is mapping(1); [1] in d; d.get([]); items|map('string')|last; [items|sum('a', 'b')]; items|sort(reverse='x')
nope.a; nope['a']; nope + 'a'; 'a' + 1; 1 + none; n(); raise_exception('no'); 1 // 0; none|length; 1 in 2; 1 in 'a'; nope(); items.append(1); namespace(_a=1); 1 < 'a'; x|nofilter; x is notest; ['a']|sum; nope|tojson; none|join; d|items|length; {[]: 1}; 'a'.split(''); items.index(9); for; a b; (1; 'x; -nope; n.a.b; {1: 2}|tojson; {none: 1}|tojson; macro(1)
"""

TEMPLATES = r"""
{% for m in messages %}{{ loop.index }}/{{ loop.length }} {{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}
---
{% for m in messages if m.role != 'user' %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{% else %}none{% endfor %}
---
{% for m in empty %}x{% else %}nothing {{ n }}{% endfor %}
---
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'hé' %}[{{ c }}]{% endfor %}
---
{% for i in items %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }}{{ loop.cycle('a', 'b') }} {{ loop.depth }}{% endfor %}
---
{% for i in items %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% if i == 2 %}{% break %}{% endif %}{% endfor %}
---
{% for i in [[1, 2], [3, 4]] %}{% for j in i %}{{ loop.index }}{{ j }}{% endfor %}{{ loop.index }}{% endfor %}
---
{% set x = 1 %}{% for i in items %}{{ x }}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}
---
{% set ns = namespace(x=0, seen=[]) %}{% for i in items %}{% set ns.x = ns.x + i %}{% set ns.seen = ns.seen + [i] %}{% endfor %}{{ ns.x }} {{ ns.seen }}
---
{% set a, b = 1, 'z' %}{{ b }}{{ a }}{% set t = 1, 2 %}{{ t }}
---
{% set x %}in {{ n }} {% set n = 1 %}{{ n }}{% endset %}{{ x }}{{ n }}{% set y | upper | trim %} up {% endset %}{{ y }}|
---
{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{{ n }}{% endmacro %}{{ f(1) }} {{ f(1, c=3) }} {{ f() }} {{ f('<', b='>') ~ '!' }}
---
{% macro g(k) %}{% if k > 0 %}{{ k }}{{ g(k - 1) }}{% endif %}{% endmacro %}{{ g(3) }}{% set later = 1 %}
---
{% macro h() %}{{ later }}{% endmacro %}{% set later = 'now' %}{{ h() }}
---
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
---
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
---
{% filter upper %}a{{ n }}b{% endfilter %}
---
{% if n == 1 %}one{% elif n == 7 %}seven{% else %}other{% endif %}{% if nope %}x{% endif %}
---
{% raw %}{{ not }} {% if %}{% endraw %} {%- raw %} a {% endraw -%}  b
---
a  {#- comment -#}  b {# another #} c {#
 over lines #}
d
---
  {% if n %}
    kept
  {% endif %}
end
---
x {%- if n -%}  y  {%- endif -%}  z
---
  {%+ if n +%}
y{% endif %}
---
{{- ' a ' -}}   b   {{- 'c' }}
  {{ 'd' }}
---
{{ {'a': {'b': '}}'}}['a']['b'] }}{{ "%}" }}
---
{% for m in messages %}{% if m.role == 'assistant' %}A: {% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}
{% else %}{{ m.role }}: {{ m.content }}{% endif %}{% endfor %}
---
{% macro m(c) %}{% generation %}{{ c }}{% endgeneration %}{% endmacro %}ab{{ m('cd') }}ef{% generation %}é{% set z = 1 %}{% endgeneration %}{{ z }}
---
{% for t in messages[2].tool_calls %}{{ t.function.arguments | tojson }}{% for k, v in t.function.arguments | items %}{{ k }}{{ v }}{% endfor %}{% endfor %}
---
{{ messages }}{{ messages[1] }}
---
{% set r = messages | map(attribute='role') %}{{ r | join(',') }}|{{ r | join(',') }}
---
{% if messages | selectattr('role', 'equalto', 'nobody') %}true{% endif %}
---
{% if n %}{{ x
---
{% if n %}
---
{% endif %}
---
{% for a in %}{% endfor %}
---
{% set n.a = 1 %}
---
{% break %}
---
{% set 1 = 2 %}
---
{{ raise_exception('a conversation must begin with ' ~ messages[0].role) }}
---
{% for i in range(3) %}{{ i }}{% if loop.last %}.{% else %},{% endif %}{% endfor %}

---
{% set ns = namespace() %}{% set ns['a'] = 1 %}
---
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% for a, b in [1] %}{% endfor %}
---
{% for v in items %}{% set loop = v %}{% endfor %}
---
{% for loop in items %}{{ loop }}{% endfor %}
---
{% for v in empty %}{% else %}{% set loop = 1 %}{% endfor %}
---
{% set loop = 5 %}{{ loop }}{% for v in items %}{{ loop.index }}{% endfor %}{{ loop }}
---
{% filter length %}abc{% endfilter %}
---
{% set g = messages | map(attribute='role') %}{{ 'user' in g }}{{ g | list }}{{ g | list }}
---
{% set g = items | map('string') %}{{ g | first }}{{ g | list }}
---
{% for i in range(3)[::-1] %}{{ i }}{% endfor %}
---
{% macro m(a) %}{{ a }}{% endmacro %}{{ m == m }}{{ m.nope }}{{ d.items.type is defined }}
---
{% with a = 1 %}{{ a }}{% endwith %}
---
{% for x in d recursive %}{{ x }}{% endfor %}
---
{% call(a) f() %}{{ a }}{% endcall %}
---
{{ '%s' | format(1) }}
---
{{ d.update({'a': 1}) }}
"""

def cases():
    for line in PRINTED.strip().split("\n"):
        yield from ("{{ " + part.strip() + " }}" for part in line.split("; "))
    yield from TEMPLATES[1:-1].split("\n---\n")


def render(template):
    spans = []
    try:
        text, spans = utils._render_with_assistant_indices(
            utils._compile_jinja_template(template), VARIABLES["messages"],
            VARIABLES["tools"], None, True,
            **{k: v for k, v in VARIABLES.items()
               if k not in ("messages", "tools", "add_generation_prompt")})
    except Exception:  # whatever a template does
        return [template, None]
    return [template, text,
            [[len(text[:a].encode()), len(text[:b].encode())] for a, b in spans]]


def main():
    made = [render(case) for case in cases()]
    out = {"variables": {**VARIABLES, "documents": None}, "cases": made}
    path = os.path.join(ROOT, "tests/data/templates.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(out, file, ensure_ascii=False, indent=0)
        file.write("\n")
    refused = sum(case[1] is None for case in made)
    print(f"{path}: {len(made)} cases, {refused} of them refused")


if __name__ == "__main__":
    main()
