package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// play sets the stage, plays the acts, and makes the copies that a reviewer may be given.
func play(ctx context.Context, dir string, out io.Writer) (err error) {
	s, err := setStage(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.witness.close()) }()
	if err := s.plays(ctx); err != nil {
		return err
	}
	checkpoint, err := s.witness.last()
	if err == nil {
		err = os.WriteFile(s.checkpoint(), checkpoint, 0o600)
	}
	if err != nil {
		return err
	}
	return summarize(out, s.places)
}

// stage is what the acts are played on.
type stage struct {
	places
	witness *witness
}

// setStage makes the keys, and has the witness know the log's.
func setStage(dir string) (*stage, error) {
	p, err := newPlaces(dir)
	if err != nil {
		return nil, err
	}
	key, err := evidence.NewKey(evidence.Origin(nodeName))
	if err != nil {
		return nil, err
	}
	known, err := evidence.ParseKeys(key.LogKey())
	if err != nil {
		return nil, err
	}
	w, err := startWitness(p.witnessed(), known)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(evidence.WriteKey(p.signingKey(), key), evidence.WriteKeys(p.keys(), key.LogKey(), w.key)); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return &stage{places: p, witness: w}, nil
}

// plays runs the acts, and copies the log when there is something to keep.
func (s *stage) plays(ctx context.Context) error {
	if err := s.act(ctx, "morning", false); err != nil {
		return err
	}
	if err := copyLog(s.log(), s.rolledBack()); err != nil {
		return err
	}
	if err := s.act(ctx, "attack", true); err != nil {
		return err
	}
	if err := s.act(ctx, "after", false); err != nil {
		return err
	}
	return errors.Join(copyLog(s.log(), s.evidence()), copyLog(s.log(), s.edited()), edit(s.edited()))
}

// act runs a node to its end, or kills it as soon as an operation is under way.
func (s *stage) act(ctx context.Context, name string, isKilled bool) (err error) {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, exe, nodeWord, name, s.dir, s.witness.url, s.witness.key) // #nosec G204 G702 -- this very program
	cmd.Env = append(cmd.Environ(), nodeEnvironment+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer stdin.Close() //nolint:errcheck // it tells the node that nobody is there any more
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	said := false
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == inFlight && isKilled {
			said = true
			_ = cmd.Process.Kill() // what came of it is seen below
		}
	}
	err = cmd.Wait()
	switch {
	case isKilled && said && err != nil:
		return nil
	case isKilled:
		return fmt.Errorf("act %s ended before it could be killed: %w", name, err)
	case err != nil:
		return fmt.Errorf("act %s: %w", name, err)
	}
	return nil
}

// nodeEnvironment tells a test binary that it is the node.
const nodeEnvironment = "INCIDENT_NODE"
