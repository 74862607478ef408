package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// stagesOf are the records that there are, written down a second time.
var stagesOf = map[audit.Type][]audit.Stage{
	audit.TypeRequest:    {audit.StageRequestReceived, audit.StageResponseComplete, audit.StagePanic, audit.StageOrphaned, audit.StageSummary},
	audit.TypeConnection: {audit.StageConnectionClosed, audit.StageSummary},
	audit.TypeAdmission:  {audit.StageResponseComplete},
	audit.TypeLog:        {audit.StageLogOpen, audit.StageLogClose, audit.StageLogPrune},
}

// words are the texts that callers cannot choose, by the places of their fields.
var words = map[string][]string{
	"who.assurance":        {"pod", "process", "sid", "none", "apiserver"},
	"who.token_state":      {"", "stale", "unbound"},
	"decision.mode":        {"Enforce", "LogOnly", ""},
	"decision.effect":      {"allow", "deny"},
	"outcome.result":       {"ok", "error", "denied", "rejected", "panic", "orphaned", "idle"},
	"outcome.code":         {"OK", "PermissionDenied", "Code(42)", "200", "403"},
	"log.cause":            {"", "start", "size", "age", "failure", "missing"},
	"log.previous_session": {"", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
	"log.previous_segment": {"", name},
	"log.void":             {name},

	"log.previous_torn_hash": {"", strings.Repeat("0f", 32)},
	"log.segment":            {"", name},
	"log.pruned.segments":    {name},
	"log.pruned.reason":      {"age", "size"},
	"log.pruned.root":        {"", hash},
	"prev":                   {"", hash},
}

var (
	hash = strings.Repeat("/", 42) + "8="
	name = "audit-18446744073709551615-01234567-89ab-4cde-8f01-23456789abcd.jsonl"
)

// pieces are what callers write.
var pieces = []string{
	"a", "csi-smb", `C:\var\lib\kubelet\`, "囧", "\u202e", "\n", "\x00", "\x1b[31m", "\xff", `"`, `\`, "</script>", "\u2028", "\U000e0041", "=cmd()", "[7 bytes cut]",
	"\ud7ff\ufffd", "\u0085", " ",
}

func text(r *rand.Rand) string {
	var out strings.Builder
	for range r.IntN(5) {
		out.WriteString(pieces[r.IntN(len(pieces))])
	}
	if r.IntN(60) == 0 {
		out.WriteString(strings.Repeat(pieces[r.IntN(len(pieces))], 9000))
	}
	return out.String()
}

// event is a record of any content.
func event(r *rand.Rand) audit.Event {
	var e audit.Event
	fill(r, reflect.ValueOf(&e).Elem(), "")
	kinds := []audit.Type{audit.TypeRequest, audit.TypeConnection, audit.TypeAdmission, audit.TypeLog}
	e.V, e.Seq, e.Type, e.Session = audit.Version, max(1, e.Seq), kinds[r.IntN(len(kinds))], "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	e.Stage = stagesOf[e.Type][r.IntN(len(stagesOf[e.Type]))]
	return e
}

func fill(r *rand.Rand, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), path)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if r.IntN(5) > 0 || path == "time" {
				v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<35), r.Int64N(1e9)).UTC()))
			}
			return
		}
		for i, f := range reflect.VisibleFields(v.Type()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fill(r, v.Field(i), strings.TrimPrefix(path+"."+name, "."))
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([][]byte{nil, []byte(`{}`), fmt.Appendf(nil, `{"a": [1, null, {"b": %q}]}`, pieces[r.IntN(5)]), []byte("{not JSON\n")}[r.IntN(4)])
			return
		}
		n := r.IntN(4)
		if r.IntN(30) == 0 {
			n = 200
		}
		if path == "log.pruned.segments" || path == "log.void" {
			n = 1 + r.IntN(20)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), path)
		}
	case reflect.String:
		if known := words[path]; known != nil {
			v.SetString(known[r.IntN(len(known))])
			return
		}
		v.SetString(text(r))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() >> r.IntN(64) * int64(1-2*r.IntN(2)))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> (r.IntN(33) + 64 - v.Type().Bits()))
	default:
		panic("a record holds a " + v.Kind().String())
	}
}
