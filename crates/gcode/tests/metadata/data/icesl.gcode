; <IceSL 2.4.1>
; print_height_mm :	12.3
; layer_count :	61
; estimated_print_time_s :	345.5
; nozzle_diameter_mm_0 :	0.4
; z_layer_height_mm :	0.2
; z_layer_height_first_layer_mm :	0.3
; extruder_temp_degree_c_0 :	210
; bed_temp_degree_c :	55
; chamber_temp_degree_c :	0
; filament_name :	Own PLA
; filament_type :	PLA
; filament_used_mm :	1234.5
; filament_used_g :	3.7
G21
G1 X1 Y2
