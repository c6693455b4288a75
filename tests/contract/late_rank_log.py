"""Times that four ranks spent in a collective: rank 1 is last but in step 4, where rank 3 is; step 0 warms up."""

LOG = """step,rank0_ms,rank1_ms,rank2_ms,rank3_ms
0,900.0,950.0,1000.0,970.0
1,130.0,101.0,120.0,112.0
2,131.0,100.0,121.0,109.0
3,129.0,100.0,119.0,108.0
4,130.0,104.0,118.0,102.0
5,128.0,100.0,120.0,107.0
6,130.0,99.0,121.0,106.0
"""
