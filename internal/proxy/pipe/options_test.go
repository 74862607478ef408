package pipe

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestNamesThatAreNoPipeNamesAreRefused(t *testing.T) {
	names := map[string]string{
		"nothing":                      "",
		"a separator":                  `csi-proxy\x`,
		"a slash":                      "csi-proxy/x",
		"the parent directory":         "..",
		"a hidden file":                ".x",
		"an option":                    "-x",
		"a dot at the end":             "csi-proxy.",
		"a stream":                     "csi-proxy:x",
		"a space":                      "csi proxy",
		"a NUL":                        "csi\x00proxy",
		"a line end":                   "csi-proxy\n",
		"a letter that looks like a k": "\u212A",
		"a percent sign":               "csi%20proxy",
		"one character too many":       strings.Repeat("x", longest+1),
	}
	options := Options{SocketDir: "never-looked-at"}
	for name, value := range names {
		t.Run(name, func(t *testing.T) {
			if listener, err := Listen(value, options); err == nil {
				t.Errorf("listens on %s", listener.Addr())
			}
			if conn, err := Dial(context.Background(), value, options); err == nil {
				t.Errorf("dialled %s", conn.RemoteAddr())
			}
		})
	}
	for _, name := range []string{"csi-proxy-filesystem-v1", "csi-proxy-volume-v2alpha1", "x", "Other_Server.v1", strings.Repeat("x", longest)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOwnerIsThisProcessAndNoOther(t *testing.T) {
	self := os.Getpid()
	for _, pid := range []uint32{0, 4, uint32(self) + 1, uint32(self) - 1, 1 << 31} {
		if err := judgeOwner("x", pid, self); !errors.Is(err, ErrTaken) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if err := judgeOwner("x", uint32(self), self); err != nil {
		t.Errorf("this process: %v", err)
	}
}
