//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// created is what requests of one sort took.
type created struct {
	order
	All quantiles `json:"all"`
	// Undecided is how many the webhook refused without a decision.
	Undecided int `json:"undecided"`
	// Blocks are the medians of the single blocks, in the order of the rounds.
	Blocks []time.Duration `json:"blocks"`

	took []time.Duration
}

// storedEvery is how many rounds go by from one in which pods are kept to the next: the fewer there are, the less the API
// server slows down by what it holds. It has no divisor in common with the number of variants, so that each is first at times.
const storedEvery = 3

// creates sends pods to every variant by turns. A round is one block of each sort; the variants of a sort follow one
// another at once, and each round begins with another of them.
func creates(ctx context.Context, s *stage, f *figures) error {
	var sorts []order
	for _, stored := range []bool{false, true} {
		for _, workers := range []int{1, 16} {
			for _, kind := range kinds {
				sorts = append(sorts, order{Pod: kind, Stored: stored, Workers: workers})
			}
		}
	}
	if err := warmUp(ctx, s, sorts); err != nil {
		return err
	}
	byOrder := map[order]*created{}
	for round := range s.size.rounds {
		turn := slices.Clone(variants)
		for range round % len(variants) {
			turn = append(turn[1:], turn[0])
		}
		for _, o := range sorts {
			if o.Stored && round%storedEvery != 0 {
				continue
			}
			for _, o.Variant = range turn {
				took, undecided, err := s.creator.block(ctx, o, s.size.block)
				if err != nil {
					return err
				}
				c := byOrder[o]
				if c == nil {
					c = &created{order: o}
					byOrder[o] = c
				}
				c.Undecided += undecided
				c.took, c.Blocks = append(c.took, took...), append(c.Blocks, median(took))
			}
		}
	}
	for _, o := range sorts {
		for _, o.Variant = range variants {
			c := byOrder[o]
			c.All = quantilesOf(c.took)
			f.Creates = append(f.Creates, c)
		}
	}
	return forget(ctx, s.api.Client)
}

// forget deletes the pods of the variants that decide: what remains is less than the scan is to find.
func forget(ctx context.Context, c client.Client) error {
	for _, v := range variants {
		if v == nothing {
			continue
		}
		for _, kind := range []string{plain, driver} {
			if err := c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespaceOf(v, kind)), client.GracePeriodSeconds(0)); err != nil {
				return fmt.Errorf("delete pods: %w", err)
			}
		}
	}
	return nil
}

// warmUp sends a short block of each sort.
func warmUp(ctx context.Context, s *stage, sorts []order) error {
	for _, o := range sorts {
		for _, o.Variant = range variants {
			if _, _, err := s.creator.block(ctx, o, s.size.block/4); err != nil {
				return err
			}
		}
	}
	return nil
}

// added is what a variant takes more than no policy: at the median that of the differences of blocks that were
// neighbours, at the 99th percentile the difference of all.
func added(base, variant *created) (p50, p99 time.Duration) {
	var differences []time.Duration
	for i := range variant.Blocks {
		differences = append(differences, variant.Blocks[i]-base.Blocks[i])
	}
	return median(differences), variant.All.P99 - base.All.P99
}
