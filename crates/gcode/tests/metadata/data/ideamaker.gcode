;Sliced by ideaMaker 4.3.2.6470, 2023-01-02 03:04:05 UTC+0000
;Dimension: 305.000 305.000 305.000 0.400
;Filament Diameter #1: 1.750
;Filament Density #1: 1250.00
;Filament Name #1: Own PLA
;Filament Type #1: PLA
;Bounding Box: 76.501 123.499 94.994 110.006 0.000 9.320
M109 T0 S215.00
M190 S60.00
M191 S31.00
;LAYER:0
;WIDTH:0.400
;HEIGHT:0.300
G1 X1 F600
;LAYER:1
;WIDTH:0.400
;HEIGHT:0.150
M84 X
;Print Time: 744
;Material#1 Used: 422.7
