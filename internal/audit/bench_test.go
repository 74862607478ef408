package audit

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

func sample() *Event {
	return &Event{
		Type: TypeRequest, Stage: StageResponseComplete, ID: "RW7UZ275BXWT453VSXCFNR6NIK", IntentSeq: 7,
		Who: &Who{Assurance: "process", Process: &WhoProcess{PID: 4711, Start: time.Now(), Exe: `C:\Program Files\driver\node.exe`}, User: &WhoUser{SID: "S-1-5-18"}},
		What: &What{
			Pipe: "csi-proxy-filesystem-v1", Group: "filesystem", Version: "v1", Method: "Mkdir", FullMethod: "/v1.Filesystem/Mkdir", Verb: "write",
			Params:  json.RawMessage(`{"path":"C:\\var\\lib\\kubelet\\plugins\\kubernetes.io\\csi\\x\\globalmount"}`),
			Targets: []Target{{Kind: "path", Value: `C:\var\lib\kubelet\plugins\kubernetes.io\csi\x\globalmount`}},
		},
		Decision: &Decision{Effect: EffectAllow, Reason: "allowed by rule driver", Rule: "driver", Policy: &Policy{Name: "acl", Revision: "sha256:0123456789abcdef"}, Mode: "Enforce"},
		Outcome:  &Outcome{Result: ResultOK, Code: "OK", LatencyUS: 1234},
		Corr:     &Corr{Conn: "QPSXPHXQTT62LSQXIB7JZ522GH"}, Where: &Where{Node: "node-1"},
	}
}

func BenchmarkEncode(b *testing.B) {
	e := *sample()
	e.stamp("session", 1)
	var line []byte // as in a writer's memory
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if line, err = Encode(line, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	e := *sample()
	e.stamp("session", 1)
	line, err := Encode(nil, e)
	if err != nil {
		b.Fatal(err)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	text := string(line)
	var memory Memory
	for name, parts := range map[string]Parts{"into-memory": AllParts, "into-memory-without-parts": 0} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := memory.Read(text, parts); !ok {
					b.Fatal("it is left to Parse")
				}
			}
		})
	}
	for name, read := range map[string]func([]byte) (Event, error){"written": Parse, "by-encoding-json": parse} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
