package httpsclient

import (
	"strings"
	"testing"
)

func TestParseServer(t *testing.T) {
	for _, text := range []string{"https://10.0.0.1:443", "https://node/", "https://[::1]:10250"} {
		if u, err := ParseServer(text); err != nil || u.Host == "" {
			t.Errorf("%s: %v, %v", text, u, err)
		}
	}
	for _, text := range []string{
		"", "hidden:443", "http://hidden", "https://", "https://u:hidden@node", "https://node/hidden", "https://node?hidden", "https://node#hidden", "https://node:hidden",
	} {
		if u, err := ParseServer(text); u != nil || err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, %v", text, u, err)
		}
	}
}
