package audit

import "testing"

func TestOnlyWhatWasTurnedAwayIsARefusal(t *testing.T) {
	request := func(stage Stage, result string, intent uint64) Event {
		e := Event{Type: TypeRequest, Stage: stage, IntentSeq: intent}
		if result != "" {
			e.Outcome = &Outcome{Result: result}
		}
		return e
	}
	connection := func(result string) Event {
		return Event{Type: TypeConnection, Stage: StageConnectionClosed, Outcome: &Outcome{Result: result}}
	}
	for name, c := range map[string]struct {
		event Event
		want  bool
	}{
		"an intent":                                {request(StageRequestReceived, "", 0), false},
		"the end of an operation":                  {request(StageResponseComplete, ResultOK, 4), false},
		"an operation that failed":                 {request(StageResponseComplete, ResultError, 4), false},
		"an operation whose intent was let go":     {request(StageResponseComplete, ResultOK, 0), false},
		"an operation that panicked":               {request(StagePanic, ResultPanic, 4), false},
		"a call cancelled behind its intent":       {request(StageResponseComplete, ResultRejected, 4), false},
		"an orphan":                                {request(StageOrphaned, ResultOrphaned, 4), false},
		"a denial":                                 {request(StageResponseComplete, ResultDenied, 0), true},
		"a malformed request":                      {request(StageResponseComplete, ResultRejected, 0), true},
		"a panic before the intent":                {request(StagePanic, ResultPanic, 0), true},
		"a summary":                                {request(StageSummary, ResultDenied, 0), true},
		"a connection with requests":               {connection(ResultOK), false},
		"a connection that was turned away":        {connection(ResultRejected), true},
		"a connection without a request":           {connection(ResultIdle), true},
		"an admission decision that refuses a pod": {Event{Type: TypeAdmission, Stage: StageResponseComplete, Outcome: &Outcome{Result: ResultDenied}}, false},
		"a record of the log":                      {Event{Type: TypeLog, Stage: StageLogOpen}, false},
	} {
		if got := c.event.IsRefusal(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What a record claims that the writer of the log makes of one request or connection multiplies nothing.
func TestSummariesAloneStandForMoreThanOne(t *testing.T) {
	const claimed = 1_000_000
	for name, c := range map[string]struct {
		e    Event
		want uint64
	}{
		"a summary of requests":             {Event{Type: TypeRequest, Stage: StageSummary, Outcome: &Outcome{Result: ResultDenied}}, claimed},
		"a summary of connections":          {Event{Type: TypeConnection, Stage: StageSummary, Outcome: &Outcome{Result: ResultRejected}}, claimed},
		"requests that were no calls":       {Event{Type: TypeRequest, Stage: StageResponseComplete, What: &What{Pipe: "p"}, Outcome: &Outcome{Result: ResultRejected}}, claimed},
		"a call that is refused":            {Event{Type: TypeRequest, Stage: StageResponseComplete, What: &What{Method: "Mkdir"}, Outcome: &Outcome{Result: ResultRejected}}, 1},
		"a call that is denied":             {Event{Type: TypeRequest, Stage: StageResponseComplete, Decision: &Decision{}, Outcome: &Outcome{Result: ResultDenied}}, 1},
		"what was no call, with a decision": {Event{Type: TypeRequest, Stage: StageResponseComplete, Decision: &Decision{}, Outcome: &Outcome{Result: ResultRejected}}, 1},
		"an intent that is refused":         {Event{Type: TypeRequest, Stage: StageRequestReceived, Outcome: &Outcome{Result: ResultRejected}}, 1},
		"a panic":                           {Event{Type: TypeRequest, Stage: StagePanic, Outcome: &Outcome{Result: ResultRejected}}, 1},
		"an orphan":                         {Event{Type: TypeRequest, Stage: StageOrphaned, Outcome: &Outcome{Result: ResultDenied}}, 1},
		"a connection that is refused":      {Event{Type: TypeConnection, Stage: StageConnectionClosed, Outcome: &Outcome{Result: ResultRejected}}, 1},
		"a connection that is denied":       {Event{Type: TypeConnection, Stage: StageConnectionClosed, Outcome: &Outcome{Result: ResultDenied}}, 1},
		"an act":                            {Event{Type: TypeRequest, Stage: StageResponseComplete, IntentSeq: 7, Outcome: &Outcome{Result: ResultDenied}}, 1},
		"an act that went well":             {Event{Type: TypeRequest, Stage: StageResponseComplete, Outcome: &Outcome{Result: ResultOK}}, 1},
		"an intent":                         {Event{Type: TypeRequest, Stage: StageRequestReceived}, 1},
		"a connection that was answered":    {Event{Type: TypeConnection, Stage: StageConnectionClosed, Outcome: &Outcome{Result: ResultOK}}, 1},
		"an admission":                      {Event{Type: TypeAdmission, Stage: StageResponseComplete, Outcome: &Outcome{Result: ResultDenied}}, 1},
		"a record of the log":               {Event{Type: TypeLog, Stage: StageLogOpen, Who: &Who{}, Outcome: &Outcome{Result: ResultDenied}}, 1},
		"a summary of another type":         {Event{Type: TypeAdmission, Stage: StageSummary, Outcome: &Outcome{Result: ResultDenied}}, 1},
	} {
		if c.e.Outcome != nil {
			c.e.Outcome.Count = claimed
		}
		if got := c.e.Count(); got != c.want {
			t.Errorf("%s counts as %d, want %d", name, got, c.want)
		}
	}
}

func TestReconcileCountsWhatASummaryStandsFor(t *testing.T) {
	at := func(seq uint64, e Event) Event {
		e.V, e.Seq, e.Session = Version, seq, "A"
		return e
	}
	events := []Event{
		at(1, Event{Type: TypeLog, Stage: StageLogOpen, Log: &Log{}}),
		at(2, Event{Type: TypeRequest, Stage: StageResponseComplete, ID: "1", Outcome: &Outcome{Result: ResultDenied}}),
		at(3, Event{Type: TypeRequest, Stage: StageSummary, ID: "2", Outcome: &Outcome{Result: ResultDenied, Count: 41}}),
		at(4, Event{Type: TypeConnection, Stage: StageSummary, ID: "3", Outcome: &Outcome{Result: ResultIdle, Count: 7}}),
		at(5, Event{Type: TypeLog, Stage: StageLogClose, Log: &Log{Unwritten: 3}}),
	}
	report, err := reconcile(func(yield func(Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil || report.Terminals != 42 || report.Connections != 7 || report.Unwritten != 3 || report.FaultCount != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	events[3].ID, events[3].Type = "2", TypeRequest
	if report, _ = reconcile(func(yield func(Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}); report.FaultCount != 1 {
		t.Errorf("two summaries of one id: faults %v", report.Faults)
	}
}
