//go:build windows && !fakehost

package main

import (
	"strings"
	"testing"
)

func TestTheProgramOfNodesActsOnNoInventedMachine(t *testing.T) {
	if h, err := newHost(hostMemory, hostOptions{}); h != nil || err == nil || !strings.Contains(err.Error(), "-tags fakehost") {
		t.Errorf("%v, %v", h, err)
	}
}
