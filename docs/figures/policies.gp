# SPDX-License-Identifier: Apache-2.0
# What a step takes under the three policies: gnuplot policies.gp, in this folder.
# The figures come from `compare_policies 20000 > policies.csv` (examples/compare_policies.cpp).
set datafile separator ","
set terminal svg size 760,420 font "sans,13" background "white"
set output "policies.svg"
set xlabel "gradients that a step waits for, of 16 replicas"
set ylabel "mean step, in mean computing times"
set key top left
set grid ytics lc rgb "#dddddd"
set xrange [7.7:16.3]
set yrange [0:3.6]
set border 3
set xtics 8,1,16 nomirror
set ytics nomirror
plot "policies.csv" every ::1 using 1:3 with linespoints lw 2 pt 7 ps 0.7 lc rgb "#d95f02" title "latest\\_token", \
     "policies.csv" every ::1 using 1:4 with linespoints lw 2 pt 7 ps 0.7 lc rgb "#7570b3" title "tensorflow", \
     "policies.csv" every ::1 using 1:2 with linespoints lw 2 pt 7 ps 0.7 lc rgb "#1b9e77" title "cancel"
