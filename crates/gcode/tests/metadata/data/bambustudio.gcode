; HEADER_BLOCK_START
; BambuStudio 01.06.02.04
; model printing time: 3m 1s; total estimated time: 9m 7s
; total layer number: 50
; total filament length [mm] : 220.18,10.00
; total filament weight [g] : 0.68
; max_z_height: 10.00
; HEADER_BLOCK_END

; CONFIG_BLOCK_START
; chamber_temperatures = 0
; filament_colour = #00AE42
; filament_type = PLA
; hot_plate_temp_initial_layer = 45
; initial_layer_print_height = 0.25
; layer_height = 0.2
; nozzle_diameter = 0.4
; nozzle_temperature = 220
; nozzle_temperature_initial_layer = 225
; printer_model = Own Printer
; CONFIG_BLOCK_END
M73 P0 R9
G1 Z0.25 F300
M17 S
