package certs

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsNameEveryFault(t *testing.T) {
	_, err := NewRotator(Options{Authority: 20 * day, Leaf: 10 * day, Grace: 4 * day, Keep: -1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"Namespace is empty", "Service is empty", "Secret is empty", "Configurations is empty", "no store", "Keep -1ns is negative",
		"Leaf 240h0m0s is more than a third of Authority 480h0m0s", "more than a third of Leaf 240h0m0s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: lacks %s", err, want)
		}
	}
	if _, err := NewFollower(FollowerOptions{}); err == nil || !strings.Contains(err.Error(), "no copy") || !strings.Contains(err.Error(), "Secret is empty") {
		t.Error(err)
	}
	if _, err := NewChain(ChainOptions{}); err == nil || !strings.Contains(err.Error(), "no copy") || !strings.Contains(err.Error(), "no certificate") || strings.Contains(err.Error(), "Secret") {
		t.Error(err)
	}
}

func TestDefaultsAreAHandOverInGoodTime(t *testing.T) {
	r, err := NewRotator(Options{Names: names, Store: newMemory().connect()})
	if err != nil {
		t.Fatal(err)
	}
	o := r.options
	got := []time.Duration{o.Authority, o.Leaf, o.Grace, o.Keep, o.Interval}
	for i, want := range []time.Duration{365 * day, 30 * day, 2 * time.Minute, time.Hour, time.Minute} {
		if got[i] != want {
			t.Errorf("%d: %v, want %v", i, got[i], want)
		}
	}
}
