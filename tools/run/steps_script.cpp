// SPDX-License-Identifier: Apache-2.0
// Writes the gnuplot script of steps.svg.
#include "tools/run/plots.hpp"

namespace troupe {

namespace {

constexpr std::string_view steps_preparation
  = R"gnuplot(# Draws steps.svg from metrics.csv and replicas.csv:  gnuplot steps.gp
reset session
set terminal svg size 1080,760 dynamic enhanced font "DejaVu Sans,13" background "#ffffff"
set output "steps.svg"
set datafile separator ","
set datafile columnheaders

stats "metrics.csv" using (column("step_seconds")) nooutput
records = STATS_records
thinned = ceil(records / 3000.0)
unit = STATS_median < 0.001 ? "us" : STATS_median < 1 ? "ms" : "s"
scaled(seconds) = seconds * (unit eq "us" ? 1e6 : unit eq "ms" ? 1e3 : 1)
told(time) = sprintf(time < 999.5 ? "%.3g %s" : "%.0f %s", time, unit)
stats "metrics.csv" using (column("step")) nooutput
first_step = STATS_min
last_step = STATS_max
stats "replicas.csv" using (column("replica")) nooutput
last_replica = STATS_max

# Times, each with the share of steps that took no longer.
set table $shares
plot "metrics.csv" using (scaled(column("step_seconds"))):(1.0) smooth cnormal
unset table
set datafile nocolumnheaders
set datafile separator whitespace
stats $shares using 1 nooutput
longest = STATS_max
p50 = p90 = p99 = longest
stats $shares using (p50 = $2 >= 0.50 && $1 < p50 ? $1 : p50) nooutput
stats $shares using (p90 = $2 >= 0.90 && $1 < p90 ? $1 : p90) nooutput
stats $shares using (p99 = $2 >= 0.99 && $1 < p99 ? $1 : p99) nooutput
# A few steps that stand out must not flatten all others; the longest is told in words.
top = longest < 3 * p99 ? 1.08 * longest : 2 * p99
top = top > 0 ? top : 1

set border 3 lc rgb "#888888"
set tics nomirror out textcolor rgb "#444444"
set grid ytics lt 1 lw 1 lc rgb "#e4e4e4"
set title font ",15" offset 0,-0.2
set xlabel offset 0,0.4
set ylabel offset 0.8,0
set style fill solid 1 noborder
set boxwidth 0.7
set multiplot
unset key
)gnuplot";

constexpr std::string_view step_times = R"gnuplot(
set lmargin at screen 0.095
set rmargin at screen 0.60
set bmargin at screen 0.61
set tmargin at screen 0.94
set title thinned > 1 ? sprintf("Time of each step (one of %d)", thinned) : "Time of each step"
set xlabel "step"
set ylabel "step time, ".unit
set xrange [first_step - 1:last_step]
set yrange [0:top]
set datafile columnheaders
set datafile separator ","
plot "metrics.csv" every thinned using "step":(scaled(column("step_seconds"))) \
       with points pt 7 ps (records > 500 ? 0.25 : 0.45) lc rgb "#0b5394"

set lmargin at screen 0.66
set rmargin at screen 0.97
set title "Share of steps that took no longer"
set xlabel "share of steps, %"
unset ylabel
set xrange [0:100]
set datafile nocolumnheaders
set datafile separator whitespace
# The words stand where the curve leaves room: below it, or above.
lowest = p50 > 0.5 * top ? 0.12 : 0.68
set for [i=1:4] label i at graph 0.06, graph lowest + 0.08 * (4 - i) textcolor rgb "#444444"
set label 1 "median ".told(p50)
set label 2 "p90 ".told(p90)
set label 3 "p99 ".told(p99)
set label 4 "longest ".told(longest)
plot $shares using (100 * $2):1 with steps lw 2.5 lc rgb "#0b5394", \
     "" using (0):1:(100 * $2):(0) every ::::0 with vectors nohead lw 2.5 lc rgb "#0b5394"
unset label
)gnuplot";

constexpr std::string_view replica_panels = R"gnuplot(
# Bars are stacked by drawing the sum of all parts first, and shorter sums over it.
set datafile columnheaders
set datafile separator ","
set bmargin at screen 0.15
set tmargin at screen 0.45
set xlabel "replica"
set xrange [-0.7:last_replica + 0.7]
set yrange [0:*]
if (last_replica < 20) set xtics 1

set lmargin at screen 0.095
set rmargin at screen 0.50
set title "What became of each replica's gradients"
set ylabel "gradients"
set key at screen 0.295,0.045 center horizontal Left reverse samplen 1 width 0 maxrows 1
plot "replicas.csv" using "replica":(column("accepted") + column("stale") + column("cancelled")) \
       with boxes lc rgb "#b8b8b8" title "cancelled", \
     "" using "replica":(column("accepted") + column("stale")) \
       with boxes lc rgb "#e69f00" title "stale", \
     "" using "replica":"accepted" with boxes lc rgb "#0b5394" title "accepted"

set lmargin at screen 0.58
set rmargin at screen 0.97
set title "What each replica's time went to"
set ylabel "seconds"
set key at screen 0.775,0.045
plot "replicas.csv" using "replica":(column("used_seconds") + column("wasted_seconds") + column("waiting_seconds")) \
       with boxes lc rgb "#cfe2f3" title "waiting", \
     "" using "replica":(column("used_seconds") + column("wasted_seconds")) with boxes lc rgb "#e69f00" title "wasted", \
     "" using "replica":"used_seconds" with boxes lc rgb "#0b5394" title "used"
unset multiplot
)gnuplot";

} // namespace

std::string steps_script() {
  return std::string{steps_preparation}.append(step_times).append(replica_panels);
}

} // namespace troupe
