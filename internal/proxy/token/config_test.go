package token

import (
	"strings"
	"testing"
	"time"
)

func TestConfigIsCheckedAsAWhole(t *testing.T) {
	a := startAPI(t)
	_, file := offline(t, newClock())
	byKeys := Config{Method: ByKeys, Audience: ourAudience, Node: ourNode, Issuer: ourIssuer, Keys: file}
	byReview := a.config(t)
	for _, tt := range []struct {
		name   string
		from   Config
		change func(*Config)
		says   string
	}{
		{"no method", byKeys, func(c *Config) { c.Method = "" }, "method"},
		{"an unknown method", byKeys, func(c *Config) { c.Method = "any" }, "method"},
		{"keys without an issuer", byKeys, func(c *Config) { c.Issuer = "" }, "issuer"},
		{"keys without a file", byKeys, func(c *Config) { c.Keys = "" }, "keys"},
		{"a file that is not there", byKeys, func(c *Config) { c.Keys += ".none" }, "keys"},
		{"a file of another kind", byKeys, func(c *Config) { c.Keys = byReview.API.CAFile }, "keys"},
		{"no audience", byKeys, func(c *Config) { c.Audience = "" }, "audience"},
		{"no node", byKeys, func(c *Config) { c.Node = "" }, "node"},
		{"a node that cannot be one", byKeys, func(c *Config) { c.Node = "a/b" }, "node"},
		{"review without a server", byReview, func(c *Config) { c.API = API{} }, "api"},
		{"review with keys", byReview, func(c *Config) { c.Keys = file }, "keys"},
		{"plain HTTP", byReview, func(c *Config) { c.API.Server = "http://10.0.0.1" }, "api.server"},
		{"a password in the address", byReview, func(c *Config) { c.API.Server = "https://u:hidden@10.0.0.1" }, "api.server"},
		{"a path in the address", byReview, func(c *Config) { c.API.Server += "/x" }, "api.server"},
		{"no authority", byReview, func(c *Config) { c.API.CAFile = "" }, "api.caFile"},
		{"an authority without certificates", byReview, func(c *Config) { c.API.CAFile = c.API.TokenFile }, "api: CA file"},
		{"no credentials", byReview, func(c *Config) { c.API.TokenFile = "" }, "tokenFile"},
		{"credentials that are not there", byReview, func(c *Config) { c.API.TokenFile += ".none" }, "api: token file"},
		{"two kinds of credentials", byReview, func(c *Config) { c.API.CertFile, c.API.KeyFile = file, file }, "not both"},
		{"a certificate without a key", byReview, func(c *Config) { c.API.TokenFile, c.API.CertFile = "", file }, "needs the other"},
		{"a certificate that is none", byReview, func(c *Config) { c.API.TokenFile, c.API.CertFile, c.API.KeyFile = "", file, file }, "api: client certificate"},
		{"a leeway of an hour", byKeys, func(c *Config) { c.Leeway = time.Hour }, "leeway"},
		{"a negative time", byKeys, func(c *Config) { c.StaleFor = -1 }, "staleFor"},
		{"an answer that holds for a day", byKeys, func(c *Config) { c.AllowFor = 24 * time.Hour }, "allowFor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.from
			tt.change(&c)
			_, err := New(c, Metrics{})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want an error about %s", err, tt.says)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
	for _, c := range []Config{byKeys, byReview} {
		if _, err := New(c, Metrics{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := New(Config{}, Metrics{}); err == nil || strings.Count(err.Error(), "\n") < 2 {
		t.Errorf("got %v, want all faults", err)
	}
}
