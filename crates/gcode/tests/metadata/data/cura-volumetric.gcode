;TIME:60
;Filament used: 4615.03mm3
;Generated with Cura_SteamEngine 4.9.1
G28
G1 X1
