#include "textflag.h"

// func Used() int64
TEXT ·Used(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ 8(AX), AX
	SUBQ SP, AX
	MOVQ AX, ret+0(FP)
	RET
