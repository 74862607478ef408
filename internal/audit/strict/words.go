package strict

import "github.com/pipeguard/pipeguard/internal/audit"

// recorded are the words that records have in fields whose values are known beforehand, to the letter.
var recorded = map[string]map[string]bool{
	"type":   wordsOf(audit.TypeRequest, audit.TypeConnection, audit.TypeAdmission, audit.TypeLog),
	"effect": wordsOf(audit.EffectAllow, audit.EffectDeny),
	"result": wordsOf(audit.ResultOK, audit.ResultError, audit.ResultDenied, audit.ResultRejected, audit.ResultPanic, audit.ResultOrphaned, audit.ResultIdle),
	"stage": wordsOf(audit.StageLogOpen, audit.StageLogClose, audit.StageLogPrune, audit.StageRequestReceived, audit.StageResponseComplete, audit.StagePanic,
		audit.StageOrphaned, audit.StageSummary, audit.StageConnectionClosed),
}

func wordsOf[T ~string](all ...T) map[string]bool {
	words := map[string]bool{}
	for _, w := range all {
		words[string(w)] = true
	}
	return words
}
