package proxy

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestOneFaultOfManyPipesIsSaidOnce(t *testing.T) {
	directory, taken := errors.New("directory for sockets: mode is 0777"), errors.New("taken")
	s := &Server{listen: func(name string) (net.Listener, error) {
		if name == "odd" {
			return nil, taken
		}
		return nil, directory
	}}
	for _, name := range []string{"a", "b", "odd", "c"} {
		s.pipes = append(s.pipes, &pipe{name: name})
	}
	_, err := s.open()
	if !errors.Is(err, directory) || !errors.Is(err, taken) {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); strings.Count(text, "0777") != 1 || !strings.Contains(text, "3 pipes, a and others") || !strings.Contains(text, "open pipe odd: taken") {
		t.Errorf("said %s", text)
	}
}
