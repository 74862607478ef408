package wmi

import (
	"errors"
	"fmt"
	"time"
)

// Options bound what a Pool does at a time. Zero values stand for the defaults.
type Options struct {
	Workers    int           // threads that ask WMI; 4
	Queue      int           // calls that wait for one of them; 128
	MaxResults int           // instances that one question may return; 10,000
	Stuck      time.Duration // a call that has not returned after this is given up; 2 min
	MaxStuck   int           // given-up threads that are replaced; with one more every call is refused; 4
	CloseWait  time.Duration // how long Close waits for calls that run; 10 s

	// OnStuck, if set, is told of each call that was given up: what it did, and how long ago it began.
	OnStuck func(op string, since time.Duration)
}

// complete fills the defaults in and reports every fault.
func (o Options) complete() (Options, error) {
	var errs []error
	number := func(name string, value *int, usual, most int) {
		if *value == 0 {
			*value = usual
		}
		if *value < 1 || *value > most {
			errs = append(errs, fmt.Errorf("%s is %d, not between 1 and %d", name, *value, most))
		}
	}
	duration := func(name string, value *time.Duration, usual time.Duration) {
		if *value == 0 {
			*value = usual
		}
		if *value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative: %s", name, *value))
		}
	}
	number("Workers", &o.Workers, 4, 64)
	number("Queue", &o.Queue, 128, 10_000)
	number("MaxResults", &o.MaxResults, 10_000, 1_000_000)
	number("MaxStuck", &o.MaxStuck, 4, 64)
	duration("Stuck", &o.Stuck, 2*time.Minute)
	duration("CloseWait", &o.CloseWait, 10*time.Second)
	if o.OnStuck == nil {
		o.OnStuck = func(string, time.Duration) {}
	}
	return o, errors.Join(errs...)
}
