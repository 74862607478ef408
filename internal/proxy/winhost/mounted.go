package winhost

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// hops bounds how many links and mount points are gone through on the way to a path; links may lead in a circle.
const hops = 32

// VolumeIDFromTargetPath implements [handler.Volume]. A link at the path is followed to another path within the working
// directories: drivers publish a volume by a link to where it is staged, and ask for it by the link.
func (v volumes) VolumeIDFromTargetPath(ctx context.Context, path safepath.Path) (handler.VolumeID, error) {
	own := path
	for range hops {
		tree, names, err := v.at(ctx, own)
		if err != nil {
			return "", err
		}
		if len(names) == 0 {
			break
		}
		text, err := tree.redirection(names)
		if err != nil {
			return "", wrap("find the volume at", path, err)
		}
		if text == "" {
			break
		}
		if id, is := volumeIn(text); is {
			return id, nil
		}
		if own, err = v.roots.Check(text); err != nil {
			return "", wrap("find the volume at", path, fmt.Errorf("%w: %w", errRedirected, err))
		}
	}
	return "", wrap("find the volume at", path, fmt.Errorf("not a mounted folder: %w", handler.ErrPrecondition))
}

func (t tree) redirection(names []string) (text string, err error) {
	err = t.with(names, func(at at) (err error) {
		text, err = redirection(at)
		return err
	})
	return text, err
}

// redirection returns what a link or mount point leads to, and nothing for everything else.
func redirection(at at) (string, error) {
	entry, err := at.parent.Stat(at.name)
	if err != nil || entry.kind != link && entry.kind != mount {
		return "", err
	}
	return at.parent.Readlink(at.name)
}

// ClosestVolumeIDFromTargetPath implements [handler.Volume]. It goes down from the working directory, through mount
// points into volumes and through links to other paths within the working directories, and nowhere else.
func (v volumes) ClosestVolumeIDFromTargetPath(ctx context.Context, path safepath.Path) (handler.VolumeID, error) {
	tree, names, err := v.at(ctx, path)
	if err != nil {
		return "", err
	}
	drive := driveOf(tree)
	for range hops {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		end, err := tree.follow(names)
		if err != nil {
			return "", wrap("find the volume of", path, err)
		}
		if end.text == "" {
			id, err := v.holding(ctx, end.volume, drive)
			return id, wrap("find the volume of", path, err)
		}
		if id, is := volumeIn(end.text); is {
			if len(end.rest) == 0 {
				return id, nil
			}
			tree, names, drive = v.tree(string(id)), end.rest, ""
			continue
		}
		next, err := v.roots.Check(end.text)
		if err != nil {
			return "", wrap("find the volume of", path, fmt.Errorf("%w: %w", errRedirected, err))
		}
		tree, names = v.tree(next.Root()), slices.Concat(next.Rel(), end.rest)
		drive = driveOf(tree)
	}
	return "", wrap("find the volume of", path, fmt.Errorf("%w: more than %d of them", errRedirected, hops))
}

// driveOf returns the letter of the drive of a working directory.
func driveOf(t tree) string { return strings.ToUpper(t.name[:1]) }

// holding names the volume that a directory is on: as its handle says, or else as its drive.
func (v volumes) holding(ctx context.Context, volume, drive string) (handler.VolumeID, error) {
	if id, is := volumeIn(volume); is {
		return id, nil
	}
	if drive == "" {
		return "", fmt.Errorf("its volume has no name of the mount manager's: %w", handler.ErrPrecondition)
	}
	what := "the partition of drive " + drive
	partition, err := v.row(ctx, what, wmi.Query{
		Namespace: wmi.Storage, Class: "MSFT_Partition", Select: []string{objectID, "DiskNumber", "PartitionNumber"},
		Where: []wmi.Equal{{Property: "DriveLetter", Value: drive}},
	})
	if err != nil {
		return "", err
	}
	found, err := v.related(ctx, what, partition, partitionToVolume, "MSFT_Volume")
	if err != nil {
		return "", err
	}
	row, err := only("the volume of drive "+drive, found)
	if err != nil {
		return "", err
	}
	name, err := row.Text("UniqueId")
	if err != nil {
		return "", unknown(what, err)
	}
	return handler.ParseVolumeID(name)
}
