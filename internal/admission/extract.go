package admission

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

const (
	// maxWork bounds what one object may cost: a byte of a path that is judged costs 1. That grows with the square of the
	// object's size, because a path is judged with each of its mounts, so without a bound 3 MiB could keep a core busy for
	// minutes. It is added up before anything is judged. Every object that the match conditions call plain stays below it: the
	// cluster stores such an object without asking, and a later review or scan must not refuse it.
	maxWork = 1 << 21
	// entryWork is what an entry of the input costs by itself, policyWork what each policy that governs it adds.
	entryWork  = 64
	policyWork = 4
	// exprWork is how much more a byte costs that is judged with a subPathExpr: it is read for each thing that a variable may make of it.
	exprWork = 2
)

var errTooMuchWork = errors.New("the object has too many containers and host paths, or too long ones, to be judged")

// extraction turns the part of an object that gives access to a node into entries of an Input.
type extraction struct {
	scope *Scope
	spec  *podSpec
	field string // path of that part in the object
	// byName has the positions in spec.hostPaths, by the volumes' names and, of one name, in the object's order.
	byName []int
	// mounted marks the hostPath volumes that a container mounts, by position in spec.hostPaths.
	mounted   []bool
	work      int
	allowance *jsonscan.Allowance
	made      map[string]*governing // by pipe: the lists of policies that were made for this object

	containers []Container
	mounts     []Mount
	unmounted  []Volume
	persistent []PersistentVolume
}

// extract lists the containers of obj, each container's mounts of guarded pipes, devices, shares and paths of equal
// power, the volumes of that sort that no container mounts, and such a path of a PersistentVolume. What they take, and the terms
// that will be made of them, is taken from a.
func extract(scope *Scope, obj *object, a *jsonscan.Allowance) (extraction, error) {
	spec := &obj.pod
	e := extraction{
		scope:      scope,
		spec:       spec,
		field:      obj.rules.podField(),
		byName:     byName(spec.hostPaths),
		mounted:    make([]bool, len(spec.hostPaths)),
		containers: make([]Container, 0, len(spec.containers)+len(spec.initContainers)+len(spec.ephemeral)),
		allowance:  a,
	}
	switch e.work = e.pathWork(obj.volume.sources); {
	case e.work > maxWork:
		return extraction{}, errTooMuchWork
	case a.Take(pathWeight*e.work) != nil:
		return extraction{}, jsonscan.ErrAllowance
	}
	for c, mounts := range spec.all(e.field) {
		if e.exhausted() {
			break
		}
		e.containers = append(e.containers, c)
		for j, m := range mounts {
			e.mount(&c, j, m)
		}
	}
	for i, v := range spec.hostPaths {
		if e.mounted[i] || e.exhausted() {
			continue
		}
		if target, ok := e.judge(v.path, volumeMount{}); ok {
			e.unmounted = append(e.unmounted, Volume{Volume: v.name, Target: target, Field: v.field(e.field)})
		}
	}
	e.persistentVolume(&obj.volume)
	switch {
	case a.Spent():
		return extraction{}, jsonscan.ErrAllowance
	case e.work > maxWork:
		return extraction{}, errTooMuchWork
	}
	return e, nil
}

// exhausted reports whether the work is too much, or the allowance taken. What is left out then does not matter: the object is refused,
// or read once more.
func (e *extraction) exhausted() bool { return e.work > maxWork || e.allowance.Spent() }

// pathWork is the work that the paths of the object take. It marks the volumes that are mounted, and stops where the work is too much.
func (e *extraction) pathWork(sources []volumeSource) (work int) {
	for _, list := range [][]container{e.spec.initContainers, e.spec.containers, e.spec.ephemeral} {
		for _, c := range list {
			work += entryWork
			for _, m := range c.mounts {
				for _, i := range e.named(m.volume) {
					e.mounted[i] = true
					read := len(e.spec.hostPaths[i].path) + len(m.subPath)
					if m.expr {
						read *= exprWork
					}
					if work += entryWork + read; work > maxWork {
						return work
					}
				}
			}
		}
	}
	for i, v := range e.spec.hostPaths {
		if !e.mounted[i] {
			work += entryWork + len(v.path)
		}
	}
	for _, s := range sources {
		work += entryWork + exprWork*len(s.path)
	}
	return work
}

// named are the positions of the hostPath volumes of a name.
func (e *extraction) named(name string) []int {
	first, _ := slices.BinarySearchFunc(e.byName, name, func(i int, name string) int { return strings.Compare(e.spec.hostPaths[i].name, name) })
	end := first
	for end < len(e.byName) && e.spec.hostPaths[e.byName[end]].name == name {
		end++
	}
	return e.byName[first:end]
}

func byName(volumes []hostPathVolume) []int {
	positions := make([]int, len(volumes))
	for i := range positions {
		positions[i] = i
	}
	slices.SortStableFunc(positions, func(a, b int) int { return strings.Compare(volumes[a].name, volumes[b].name) })
	return positions
}

// mount judges one volumeMount against every volume of its name: the API server refuses duplicates,
// but a verdict must not depend on which of two a reader takes.
func (e *extraction) mount(c *Container, index int, m volumeMount) {
	for _, i := range e.named(m.volume) {
		v := e.spec.hostPaths[i]
		if e.exhausted() {
			return
		}
		target, ok := e.judge(v.path, m)
		if !ok {
			continue
		}
		e.mounts = append(e.mounts, Mount{
			Container:     c.Name,
			ContainerType: c.Type,
			Image:         c.Image,
			Privileged:    c.Privileged,
			HostProcess:   c.HostProcess,
			Volume:        v.name,
			SubPath:       m.subPath,
			Target:        target,
			Field:         c.Field + ".volumeMounts[" + strconv.Itoa(index) + "]",
			VolumeField:   v.field(e.field),
			runAsUserName: c.RunAsUserName,
		})
	}
}

func (e *extraction) persistentVolume(v *persistentVolume) {
	for _, s := range v.sources {
		guard, powers, hostPaths := e.scope.guard, e.scope.powers, e.scope.hostPaths
		if target, ok := e.target(s.path, guard.JudgeAnyMount(s.path), powers.JudgeAnyMount(s.path), hostPaths.JudgeAnyMount(s.path)); ok {
			e.persistent = append(e.persistent, PersistentVolume{
				Type:   s.kind,
				Target: target,
				Field:  e.field + "." + s.kind + ".path",
				Claim:  v.claim.Claim,
			})
		}
	}
}

// judge judges the path of a volume in one mount.
func (e *extraction) judge(path string, m volumeMount) (Target, bool) {
	guard, powers, hostPaths := e.scope.guard, e.scope.powers, e.scope.hostPaths
	if m.expr {
		return e.target(path, guard.JudgeMountExpr(path, m.subPath), powers.JudgeMountExpr(path, m.subPath), hostPaths.JudgeMountExpr(path, m.subPath))
	}
	v, host := judgeMount(guard, path, m.subPath), pipepath.Reach{}
	if v.Kind != pipepath.KindPipe { // which leads to nothing else
		host = hostPaths.JudgeMount(path, m.subPath)
	}
	return e.target(path, v, powers.JudgeMount(path, m.subPath), host)
}

// target reports what a path names, and whether the input should have it: whatever is guarded or of equal power, and
// every device and share, so that policies can have rules of their own about other pipes.
func (e *extraction) target(path string, v pipepath.Verdict, power, host pipepath.Reach) (Target, bool) {
	governing, made := e.governing(v.Pipe)
	t := Target{
		Path:         path,
		Canonical:    v.Canonical,
		Kind:         string(v.Kind),
		Pipe:         v.Pipe,
		Guarded:      v.Match,
		NeverAllowed: v.NeverAllowed,
		EqualPower:   string(power.Power),
		Place:        string(host.Place),
		HostPath:     host.Directory,
		Policies:     governing.names,
		governing:    governing,
	}
	e.work += policyWork * len(t.Policies)
	ordinary := v.Kind == pipepath.KindPath || v.Kind == pipepath.KindDrive
	if !v.Match && ordinary && t.EqualPower == "" && t.Place == "" {
		return t, false
	}
	weight := entryWeight + len(v.Canonical)
	if made {
		weight += policyWeight * len(t.Policies)
	}
	return t, e.allowance.Take(weight) == nil
}

// governing finds the policies that govern a pipe. A list that is made for one is made once.
func (e *extraction) governing(pipe string) (by *governing, made bool) {
	if by = e.made[pipe]; by != nil {
		return by, false
	}
	if by, made = e.scope.governors.of(pipe); made {
		if e.made == nil {
			e.made = map[string]*governing{}
		}
		e.made[pipe] = by
	}
	return by, made
}

// judgeMount is the guard's verdict, made stricter in one case: where the volume names a guarded pipe, the guard is
// content with that, but a subPath that leaves the pipe by ".." or the like may name another one, and permission for
// the first is none for the second.
func judgeMount(guard *pipepath.Guard, path, subPath string) pipepath.Verdict {
	v := guard.JudgeMount(path, subPath)
	if subPath == "" || !v.Match || v.NeverAllowed || v.SubPath {
		return v
	}
	if joined := guard.Judge(path + `\` + subPath); joined.NeverAllowed {
		joined.SubPath = true
		return joined
	}
	return v
}
