//go:build linux

package main

import "time"

// size says how long each part goes on.
type size struct {
	name string
	// idle is how long the webhook is left alone.
	idle time.Duration
	// rounds of creating pods; in each round every kind of request gets one block, so that drift hits all alike.
	rounds int
	block  time.Duration
	// reviews are sent in loadRounds blocks of each kind.
	loadRounds int
	loadBlock  time.Duration
	// pods and policies are what is stored for the last parts.
	pods, policies int
	// applications is how often a policy is applied and removed.
	applications int
}

var (
	whole = size{
		name: "whole", idle: 10 * time.Second,
		rounds: 24, block: 200 * time.Millisecond,
		loadRounds: 3, loadBlock: 4 * time.Second,
		pods: 10_000, policies: 1_000, applications: 8,
	}
	small = size{
		name: "quick", idle: time.Second,
		rounds: 3, block: 100 * time.Millisecond,
		loadRounds: 1, loadBlock: time.Second,
		pods: 500, policies: 50, applications: 2,
	}
)

// rate is how many reviews are sent in a second, whether or not those before were answered.
const rate = 1_000
