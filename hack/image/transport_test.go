package main

import (
	"errors"
	"net/http"
	"testing"
)

// answers is a network that answers every request.
type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: http.NoBody}, nil
}

func TestPlainHTTPStaysOnThisMachineUnlessAskedFor(t *testing.T) {
	for url, isGood := range map[string]bool{
		"https://registry.example.com/v2/": true, "http://localhost:5000/v2/": true, "http://127.0.0.1:5000/v2/": true, "http://[::1]:5000/v2/": true,
		"http://registry.example.com/v2/": false, "http://10.0.0.1:5000/v2/": false, "http://192.168.1.2/v2/": false, "http://localhost.example.com/v2/": false,
		"http://registry.local/v2/": false, "http://127.0.0.1.example.com/": false, "ftp://registry.example.com/": false,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, insecure := range []bool{false, true} {
			answer, err := guarded{insecure, answers{}}.RoundTrip(r)
			if answer != nil {
				answer.Body.Close()
			}
			if want := isGood || insecure; (err == nil) != want || err != nil && !errors.Is(err, errPlain) {
				t.Errorf("%s, insecure %t: %v", url, insecure, err)
			}
		}
	}
}
