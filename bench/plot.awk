# Lines "SERIES X Y" as an SVG with axes. Set with -v: title, xname, yname; logx=1: x by
# powers of two; logy=1: y by powers of ten.
function nice(span,    p, f) { # a step that makes about five of the span
    p = 10 ^ floor(log(span / 5) / log(10))
    f = span / 5 / p
    return (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10) * p
}
function floor(x) { return int(x) - (x < int(x)) }
function place(x) { return left + (x - xlow) / (xhigh - xlow) * width }
function height(y) { return top + (yhigh - y) / (yhigh - ylow) * tall }
function label(x, y, anchor, text) {
    printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, text
}
function line_at(y, text) {
    printf "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", left, height(y), left + width
    label(left - 6, height(y) + 4, "end", text)
}
{
    if (!($1 in seen)) { seen[$1] = ++series; name[series] = $1 }
    s = seen[$1]
    x = logx ? log($2) / log(2) : $2 + 0
    y = logy ? log($3) / log(10) : $3 + 0
    n = ++count[s]
    xs[s, n] = x; ys[s, n] = y; ticks[$2] = x
    if (NR == 1) { xlow = xhigh = x; ylow = yhigh = y }
    if (x < xlow) xlow = x
    if (x > xhigh) xhigh = x
    if (y < ylow) ylow = y
    if (y > yhigh) yhigh = y
}
function axes(    step, x, y, t) {
    if (logy) {
        ylow = floor(ylow); yhigh = -floor(-yhigh)
        if (yhigh == ylow) yhigh++
        for (y = ylow; y <= yhigh; y++)
            line_at(y, y > -3 && y < 6 ? sprintf("%.10g", 10 ^ y) : sprintf("1e%d", y))
    } else {
        if (yhigh == ylow) yhigh = ylow + 1
        step = nice(yhigh - ylow)
        ylow = floor(ylow / step) * step
        yhigh = -floor(-yhigh / step) * step
        for (y = ylow; y <= yhigh + step / 2; y += step)
            line_at(y, sprintf("%.4g", y > -step / 2 && y < step / 2 ? 0 : y))
    }
    if (logx) {
        for (t in ticks) label(place(ticks[t]), top + tall + 16, "middle", t)
    } else {
        step = nice(xhigh - xlow)
        for (x = -floor(-xlow / step) * step; x <= xhigh; x += step)
            label(place(x), top + tall + 16, "middle", sprintf("%.6g", x))
    }
}
function curve(s,    i) {
    printf "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"", colour[s]
    for (i = 1; i <= count[s]; i++)
        printf "%s%.1f %.1f", i == 1 ? "M" : "L", place(xs[s, i]), height(ys[s, i])
    print "\"/>"
    for (i = 1; count[s] <= 12 && i <= count[s]; i++)
        printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n",
               place(xs[s, i]), height(ys[s, i]), colour[s]
    printf "<path d=\"M%d %dh18\" stroke=\"%s\" stroke-width=\"2\"/>\n",
           left + width + 8, top + 14 * s, colour[s]
    label(left + width + 30, top + 14 * s + 4, "start", name[s])
}
END {
    split("#1b6ca8 #c8553d #3c8d5a #8a5aa8 #8a7a2d", colour, " ")
    left = 64; top = 36; width = 430; tall = 250
    if (xhigh == xlow) xhigh = xlow + 1
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 620 340\" " \
          "font-family=\"sans-serif\" font-size=\"12\">"
    print "<rect width=\"620\" height=\"340\" fill=\"white\"/>"
    label(left + width / 2, 20, "middle", title)
    label(left + width / 2, 328, "middle", xname)
    printf "<text transform=\"translate(14 %d) rotate(-90)\" " \
           "text-anchor=\"middle\">%s</text>\n", top + tall / 2, yname
    axes()
    for (s = 1; s <= series; s++) curve(s)
    print "</svg>"
}
