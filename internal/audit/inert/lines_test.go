package inert

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// What a caller may choose of a line of the diagnostic log moves nothing on a terminal, and means the same.
func TestLinesOfALogAreInert(t *testing.T) {
	for _, said := range []string{"/a.B/C", "Käse 名", "\u009b31m\u009d0;pwned\u009c", "\u202e\u2066\u200e\u2028\u0085", "\x1b[31m\x00\x7f\n", "\xff\xfe", "<&>", ""} {
		var out bytes.Buffer
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), Lines(&out), zapcore.InfoLevel))
		log.Info("call denied", zap.String("method", said))
		log.Info("another")
		lines := bytes.Split(out.Bytes(), []byte("\n"))
		if len(lines) != 3 || len(lines[2]) != 0 {
			t.Fatalf("%q: %d lines", said, len(lines))
		}
		for _, r := range string(bytes.ReplaceAll(out.Bytes(), []byte("\n"), nil)) {
			if !IsInert(r) {
				t.Errorf("%q: %U in %q", said, r, out.String())
			}
		}
		var plain, got struct{ Method string }
		if err := json.Unmarshal(lines[0], &got); err != nil {
			t.Errorf("%q: %v", said, err)
		}
		text, err := json.Marshal(map[string]string{"method": said})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		if got != plain {
			t.Errorf("%q is read as %q", said, got.Method)
		}
	}
}
