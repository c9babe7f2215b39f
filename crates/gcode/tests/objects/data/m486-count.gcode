; any slicer
G28
M486 T2
M486 S0
G1 X1 Y1 E1
M486 S-1
G1 X9 Y9 E1
M486 S1
G1 X3 Y4 E1
M486 S0 A"ignored, the numbers are announced"
G1 X2 Y1 E1
M486 S-1
M84
