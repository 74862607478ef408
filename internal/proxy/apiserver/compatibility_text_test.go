package apiserver

// difference is what an operation does here and did not do in csi-proxy.exe, or the other way round.
type difference struct {
	operations  []string
	there, here string
}

const compatibilityHead = `# Compatibility with csi-proxy.exe

Written by a test from the published descriptors (` + "`internal/proxy/apiserver`" + `): %d group-versions with %d methods. Each has its pipe,
` + "`\\\\.\\pipe\\csi-proxy-<group>-<version>`" + `. Every version is converted to the newest one of its group, and its answers back, so that
one implementation stands behind all of them. Whose calls are carried out is for the access list of the node to say; this document
is about calls that it lets pass.

Compared with csi-proxy v1.3.0. Rights to operations are given under the names of the first column.

## In all groups

| | csi-proxy.exe | here |
|---|---|---|
| error codes | always Unknown | see below; the text begins as before |
| error prefix of forwarded old volume methods | ` + "`Forward to … failed, err=`" + ` | the same |
| ` + "`error`" + ` in old responses | never set | never set |
| disk as text that does not fit | cut off: 4294967297 is disk 1 | refused |
| path checks | filesystem only, by string prefix; links inside are followed | every path of every group, by segments; no link on the way is followed, but by ` + "`GetClosestVolumeIDFromTargetPath`" + ` within the working directories |
| separators in a path | any number of them, also at its end | the same: one is kept, before the call is judged and recorded. What begins with a separator, and every forward slash, is refused |
| a working directory, and what [volumes share](node-administrators-guide.md#paths) in it | may be removed or mounted over | may be looked at and made; InvalidArgument for what would remove, empty, replace or mount over it |
| ids and names | go into queries after escaping | are of a strict form, or refused before the host is asked |
| two calls on one object | run at once | one waits for the other |
| a caller that leaves | the call goes on, unseen | a change goes on and is recorded with its end; a question is given up |
| no answer from Windows | for ever | DeadlineExceeded |
| a panic in a method | ends the process, with all pipes | ends that call with Internal, and is recorded |

| code | when |
|---|---|
| InvalidArgument | a field is missing, of a wrong form, or a path outside of the working directories |
| NotFound | the path, disk, volume, share, portal, target or service does not exist |
| AlreadyExists | something else has the name; a directory is not empty; a volume has a file system |
| PermissionDenied | Windows refuses, or a disk that the host runs from would change; also when the access list refuses the caller |
| FailedPrecondition | the host is not in the state for it: nothing is mounted there, another volume is, services depend on this one |
| Unavailable | another machine, or a part of Windows, does not answer; nothing was done |
| DeadlineExceeded, Canceled | the caller's time is over, or the caller left |
| ResourceExhausted | too many calls wait |
| Unimplemented | this host has no such part |
| Internal | Windows failed in a way that has no better word |
`

const (
	alreadySo   = "an error on the second call"
	isSuccess   = "success if the wanted state holds already"
	systemDisk  = "any disk, also the one that Windows runs from"
	needsPermit = "PermissionDenied for a disk that the host runs from, unless the access list permits SystemDisk"
)

// differences are by group, in the order of the document.
var differences = map[string][]difference{
	"disk": {
		{[]string{"PartitionDisk"}, systemDisk, needsPermit},
		{[]string{"PartitionDisk"}, "brings the first partition of a partitioned disk online", "the same"},
		{[]string{"SetDiskState"}, systemDisk, needsPermit},
		{[]string{"Rescan"}, "as it says", "the same"},
		{[]string{"ListDiskIDs"}, "one disk that does not answer fails the whole call", "that disk has empty ids"},
		{[]string{"GetDiskNumberByName"}, "one disk that does not answer fails the whole call; an empty name finds a disk without an id",
			"only such a disk is not found; an empty name is refused; of several paths to one disk, the lowest number"},
		{[]string{"ListDiskLocations"}, "disks whose location cannot be read are left out", "the same"},
	},
	"filesystem": {
		{[]string{"Mkdir"}, "an existing directory is success", "the same; a file in the way is AlreadyExists"},
		{[]string{"Rmdir"}, "without force, a missing path is an error; with force, success", "the same, NotFound"},
		{[]string{"RmdirContents"}, "a path that is itself a link is followed", "refused; links inside are removed and not followed, as before"},
		{[]string{"CreateSymlink"}, alreadySo, isSuccess + "; anything else in the way is AlreadyExists"},
		{[]string{"IsSymlink"}, "any path of the node, and of other machines; what a link leads to is opened",
			"only paths within the working directories; a link that leads out of them, or through another link, is PermissionDenied; Windows is asked whether a share is connected and a volume there, and neither is opened"},
	},
	"volume": {
		{[]string{"MountVolume"}, "any path; a second call may fail", "only below a working directory; " + isSuccess + "; " + needsPermit},
		{[]string{"UnmountVolume"}, "any path, whatever volume is there; " + alreadySo, "FailedPrecondition if another volume is there; " + isSuccess},
		{[]string{"FormatVolume"}, "formats again what is formatted", "AlreadyExists unless the access list permits Reformat; " + needsPermit},
		{[]string{"ResizeVolume"}, "less than 100 MiB more is success, and nothing is done; size 0 fails while the service defragsvc is disabled or busy",
			"the same; then size 0 takes the free space right behind the partition; a negative size is InvalidArgument; " + needsPermit},
		{[]string{"WriteVolumeCache"}, "as it says", "the same"},
		{[]string{"GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath"}, "any path of the node, and of other machines", "only paths within the working directories"},
		{[]string{"ListVolumesOnDisk"}, "partition 0 is all partitions", "the same"},
	},
	"smb": {
		{[]string{"NewSmbGlobalMapping"}, "a mapping that answers is kept, whatever the credentials", "kept if this proxy made it with the same credentials. Others are PermissionDenied while files are open or a link leads to the share, and FailedPrecondition if the mapping was not made here; when nobody uses it, it is made anew with them. No file is closed"},
		{[]string{"NewSmbGlobalMapping"}, "a mapping whose share does not answer is removed with its open files, and mapped again", "Unavailable while the server does not answer; made anew if Windows has given it up, the server rejects its credentials, or the share is gone"},
		{[]string{"NewSmbGlobalMapping"}, "the local path is looked at after the share is mapped, and a link that fails leaves the mapping",
			"all fields are looked at first; a mapping that this call made goes away again"},
		{[]string{"NewSmbGlobalMapping"}, "an existing link is an error", "success if it leads to the same place"},
		{[]string{"NewSmbGlobalMapping"}, "a password without a user name is ignored, and the node's own rights used", "InvalidArgument"},
		{[]string{"NewSmbGlobalMapping"}, "without a user name the node's own account logs on to whatever server is named",
			"PermissionDenied unless the access list permits NodeAccount, which needs a list of shares"},
		{[]string{"NewSmbGlobalMapping", "RemoveSmbGlobalMapping"}, "any text with two components: `\\\\?\\C:\\x`, ports, wildcards, administrative shares",
			"`\\\\server\\share\\…` with a host name or address; `C$`, `ADMIN$`, `IPC$` and the like are refused, as are `pipe`, `mailslot` and `DavWWWRoot`, which are no shares"},
		{[]string{"RemoveSmbGlobalMapping"}, "not mapped is an error", "the same, NotFound"},
	},
	"system": {
		{[]string{"StartService", "StopService"}, "any service; running dependents are an error without force", "the same for services that the access list allows; FailedPrecondition"},
		{[]string{"StopService"}, "with force, every dependent is stopped too", "only dependents that `services` of the rule names; PermissionDenied, naming the others, and nothing is stopped"},
		{[]string{"GetService"}, "a start type that it does not know is BOOT", "an error"},
	},
	"iscsi": {
		{[]string{"AddTargetPortal", "RemoveTargetPortal", "DiscoverTargetPortal", "ConnectTarget", "DisconnectTarget", "GetTargetDisks"},
			"a request without a portal ends the process", "InvalidArgument"},
		{[]string{"AddTargetPortal", "RemoveTargetPortal", "DiscoverTargetPortal", "ConnectTarget", "DisconnectTarget", "GetTargetDisks"},
			"a port beyond 65535 is cut off", "InvalidArgument; port 0 is 3260, as before"},
		{[]string{"ConnectTarget"}, "`invalid authentication type authType=9`", "the same, InvalidArgument"},
		{[]string{"ConnectTarget"}, "name and secret are passed on without authentication too; CHAP without a secret is tried", "left out; InvalidArgument"},
		{[]string{"DisconnectTarget"}, "a connected target without a session ends the process", "an error"},
		{[]string{"ConnectTarget", "DisconnectTarget", "GetTargetDisks"}, "any name", "an iqn., eui. or naa. name of at most 223 bytes"},
		{[]string{"SetMutualChapSecret"}, "any length", "1 to 16 bytes"},
	},
}
