package admission

import (
	"errors"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/pipepath"
)

const (
	// maxWork bounds what one object may cost: a byte of a path that is judged costs 1, and so does holding a mount against
	// a volume. Both grow with the square of the object's size, so without a bound 3 MiB could keep a core busy for
	// minutes. A pod with 1,000 containers of 5 host paths each stays below half of it.
	maxWork = 1 << 20
	// entryWork is what an entry of the input costs by itself.
	entryWork = 64
)

var errTooMuchWork = errors.New("the object has too many containers and host paths, or too long ones, to be judged")

// extraction turns the pod spec of an object into entries of an Input.
type extraction struct {
	guard *pipepath.Guard
	spec  *podSpec
	field string // path of the pod spec in the object
	// mounted marks the hostPath volumes that a container mounts, by position in spec.hostPaths.
	mounted []bool
	work    int

	containers []Container
	mounts     []Mount
	unmounted  []Volume
}

// extract lists the containers of obj, each container's mounts of guarded pipes, devices and shares,
// and the volumes of that sort that no container mounts.
func extract(guard *pipepath.Guard, obj *object) (extraction, error) {
	spec := &obj.pod
	e := extraction{
		guard:      guard,
		spec:       spec,
		field:      obj.podField,
		mounted:    make([]bool, len(spec.hostPaths)),
		containers: make([]Container, 0, len(spec.containers)+len(spec.initContainers)+len(spec.ephemeral)),
	}
	e.list(typeInit, ".initContainers[", spec.initContainers)
	e.list(typeContainer, ".containers[", spec.containers)
	e.list(typeEphemeral, ".ephemeralContainers[", spec.ephemeral)
	for i, v := range spec.hostPaths {
		if e.mounted[i] || e.exhausted(entryWork+len(v.path)) {
			continue
		}
		if target, ok := judge(guard.Judge(v.path), v.path); ok {
			e.unmounted = append(e.unmounted, Volume{Volume: v.name, Target: target, Field: e.volumeField(v)})
		}
	}
	if e.work > maxWork {
		return extraction{}, errTooMuchWork
	}
	return e, nil
}

// exhausted adds to the work, and says whether that is enough. What is left out then does not matter:
// the object is refused.
func (e *extraction) exhausted(work int) bool {
	e.work += work
	return e.work > maxWork
}

func (e *extraction) list(kind, key string, containers []container) {
	for i, c := range containers {
		if e.exhausted(entryWork) {
			return
		}
		entry := Container{
			Name:        c.name,
			Type:        kind,
			Image:       c.image,
			Privileged:  c.privileged,
			HostProcess: isTrue(c.hostProcess, e.spec.hostProcess),
			Field:       e.field + key + strconv.Itoa(i) + "]",
		}
		e.containers = append(e.containers, entry)
		for j, m := range c.mounts {
			e.mount(&entry, j, m)
		}
	}
}

// mount judges one volumeMount against every volume of its name: the API server refuses duplicates,
// but a verdict must not depend on which of two a reader takes.
func (e *extraction) mount(c *Container, index int, m volumeMount) {
	if e.exhausted(len(e.spec.hostPaths)) {
		return
	}
	for i, v := range e.spec.hostPaths {
		if v.name != m.volume {
			continue
		}
		e.mounted[i] = true
		if e.exhausted(entryWork + len(v.path) + len(m.subPath)) {
			return
		}
		target, ok := judge(e.guard.JudgeMount(v.path, m.subPath), v.path)
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
			VolumeField:   e.volumeField(v),
		})
	}
}

func (e *extraction) volumeField(v hostPathVolume) string {
	return e.field + ".volumes[" + strconv.Itoa(v.index) + "].hostPath.path"
}

// judge reports what a verdict says, and whether the input should have it: whatever is guarded, and every device
// and share, so that policies can have rules of their own about other pipes.
func judge(v pipepath.Verdict, path string) (Target, bool) {
	ordinary := v.Kind == pipepath.KindPath || v.Kind == pipepath.KindDrive
	return Target{
		Path:         path,
		Canonical:    v.Canonical,
		Kind:         string(v.Kind),
		Pipe:         v.Pipe,
		Guarded:      v.Match,
		NeverAllowed: v.NeverAllowed,
	}, v.Match || !ordinary
}

// isTrue is the container's setting or, where it has none, the pod's.
func isTrue(own, inherited *bool) bool {
	if own == nil {
		own = inherited
	}
	return own != nil && *own
}
