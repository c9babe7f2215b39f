; KISSlicer - PREMIUM
; linux 64
; version 1.6.3 Release
; first_layer_thickness_mm = 0.3
; max_layer_thickness_mm = 0.25
; first_layer_C = 195
; bed_C = 43
; chamber_C = 30
G21
G1 X1 Y1 E1
; END_LAYER_OBJECT z=0.300
; END_LAYER_OBJECT z=4.800
M84 X
; Calculated-during-export Build Time: 12.34 minutes
; Filament used per extruder:
;    Ext #1 =  290.40 mm  (0.698 cm^3)
; Ext #2 =    10.60 mm  (0.025 cm^3)
