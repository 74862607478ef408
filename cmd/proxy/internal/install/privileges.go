package install

// Privileges are those that the service keeps of the many that LocalSystem has. Windows never takes away SeChangeNotifyPrivilege,
// which is therefore not asked for.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_required_privileges_infow
//
// The process's own calls need only privileges that are enabled in the token of LocalSystem or that the code enables. WMI carries
// calls out under the token of the process, so that its providers have the privileges that are kept here and no others.
//
// LocalSystem's others are left out because nothing asks for them: no process is started under another token (SeAssignPrimaryToken,
// SeIncreaseQuota), no user is logged on (SeTcb), no access list is passed over (SeBackup, SeRestore, SeTakeOwnership), no audit list is
// read and no security event written (SeSecurity, SeAudit), the node is not shut down and its clock not set. SeCreateGlobal is asked of
// sessions other than that of the services alone.
// https://learn.microsoft.com/windows/win32/termserv/kernel-object-namespaces
func Privileges() []string {
	return []string{
		// OpenProcess on callers (internal/proxy/peer) and on the servers of pipes (internal/proxy/watch): a caller whose process lets not
		// even SYSTEM open it would otherwise stay unknown, and be refused.
		// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-openprocess
		"SeDebugPrivilege",
		// FSCTL_SET_REPARSE_POINT for a symbolic link (internal/proxy/winhost), which enables it for that call.
		// https://learn.microsoft.com/windows/win32/secauthz/privilege-constants
		"SeCreateSymbolicLinkPrivilege",
		// MSFT_StorageSetting.UpdateHostStorageCache, behind Rescan of the disk API: CM_Reenumerate_DevNode needs it of its caller.
		// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_reenumerate_devnode
		"SeLoadDriverPrivilege",
		// MSFT_Disk, MSFT_Partition and MSFT_Volume: to initialize, partition, format and resize is volume maintenance.
		// https://learn.microsoft.com/windows/win32/secauthz/privilege-constants
		"SeManageVolumePrivilege",
		// CoSetProxyBlanket with RPC_C_IMP_LEVEL_IMPERSONATE (internal/proxy/wmi): a provider acts under the token of this process, and
		// passes the call on to services such as Storage Service and Workstation as this process. Administrators, for whom Microsoft
		// documents these classes, hold it enabled, and Windows gives it to every service.
		// https://learn.microsoft.com/windows/win32/wmisdk/impersonating-a-client
		"SeImpersonatePrivilege",
	}
}
