;FLAVOR:Marlin
;TIME:6666
;Filament used: 1.5m, 0.25m
;Layer height: 0.15
;MINX:80.5
;MINZ:0.3
;MAXZ:22.05
;Nozzle diameter = 0.6
;Filament name = "Own Brand PLA"
;Filament type = PLA
;Filament weight = [4.5, 0.75]
;Generated with Cura_SteamEngine 5.9.0
; thumbnail_QOI begin 40x20 72
; cW9pZgAAACgAAAAUBAD/yGQy/93d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d0gAAAAAAAAAB
; thumbnail end
M190 S60
M104 S200
M109 S205
M191 S38.5
;LAYER_COUNT:148
;LAYER:0
G0 F6000 X80 Y80 Z0.3
;TIME_ELAPSED:30.5
M84
;End of Gcode
