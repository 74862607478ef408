#include "textflag.h"

// func Used() int64
TEXT ·Used(SB), NOSPLIT, $0-8
	MOVD 8(g), R0
	MOVD RSP, R1
	SUB R1, R0, R0
	MOVD R0, ret+0(FP)
	RET
