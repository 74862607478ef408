#Requires -Version 5.1
<#
.SYNOPSIS
    Puts proxy.exe on this Windows node in place of csi-proxy.exe, or removes it.

.DESCRIPTION
    Checks that it runs as an administrator, that the file is the one that was meant (-Sha256), and that the configuration
    has no fault. Writes down how the service of the same name is set up now. Then proxy.exe makes itself that service
    and starts it, and is asked for its state and whether its host answers. At the end it says how to go back.

    Nothing is changed before everything was checked, and nothing at all with -WhatIf.
    proxy.exe is run from a copy in a directory that only administrators can write to, so that what was checked is what runs.

.PARAMETER Source
    The proxy.exe to install; by default the one beside this script.

.PARAMETER Sha256
    The SHA-256 that Source must have, as 64 hexadecimal digits. Without it whatever Source is gets installed as SYSTEM.

.PARAMETER Config
    The access list and all else, as in config/samples/proxy.yaml. It is copied to C:\ProgramData\Pipeguard\proxy.yaml.
    A configuration without rules denies every call.

.PARAMETER ServiceName
    Name of the service. csiproxy is the one that the documents of CSI drivers speak of.

.PARAMETER KubeletPath
    Directory of the kubelet, below which drivers may ask for paths.

.PARAMETER WorkingDir
    Further directories below which drivers may ask for paths.

.PARAMETER LogFile
    File for diagnostics. Empty leaves it to the configuration.

.PARAMETER MetricsAddress
    Address for /metrics, /healthz and /readyz, such as 127.0.0.1:9187; empty opens none. There is no authentication.

.PARAMETER AllowUnencryptedSmb
    Make SMB mappings with servers that cannot encrypt, too.

.PARAMETER AllPrivileges
    Leave the service every privilege of LocalSystem, and not only those that its operations are known to need.

.PARAMETER BackupDirectory
    Where the present setup of the service is written to.

.PARAMETER Uninstall
    Remove the service. Volumes that are mounted stay mounted; drivers cannot mount or unmount any more.

.PARAMETER Purge
    With -Uninstall: remove the program and the configuration as well. The audit log is always kept.

.EXAMPLE
    .\install.ps1 -Config .\proxy.yaml -Sha256 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef

    Installs the proxy.exe beside the script.

.EXAMPLE
    .\install.ps1 -Config .\proxy.yaml -WhatIf

    Checks everything and changes nothing.

.EXAMPLE
    .\install.ps1 -Uninstall
#>
[CmdletBinding(SupportsShouldProcess = $true, ConfirmImpact = 'Medium', DefaultParameterSetName = 'Install')]
param(
    [Parameter(ParameterSetName = 'Install')]
    [ValidateNotNullOrEmpty()]
    [string] $Source = (Join-Path $PSScriptRoot 'proxy.exe'),

    [Parameter(ParameterSetName = 'Install')]
    [ValidatePattern('^[0-9A-Fa-f]{64}$')]
    [string] $Sha256,

    [Parameter(ParameterSetName = 'Install', Mandatory = $true)]
    [ValidateNotNullOrEmpty()]
    [string] $Config,

    [Parameter(ParameterSetName = 'Install')]
    [ValidatePattern('^[A-Za-z]:\\[^"<>|*?/]+$')]
    [string] $KubeletPath = 'C:\var\lib\kubelet',

    [Parameter(ParameterSetName = 'Install')]
    [ValidatePattern('^[A-Za-z]:\\[^"<>|*?/]+$')]
    [string[]] $WorkingDir = @(),

    [Parameter(ParameterSetName = 'Install')]
    [ValidatePattern('^$|^[A-Za-z]:\\[^"<>|*?/]+$')]
    [string] $LogFile = 'C:\ProgramData\Pipeguard\proxy.log',

    [Parameter(ParameterSetName = 'Install')]
    [ValidatePattern('^$|^[0-9A-Za-z.:\[\]-]*:[1-9][0-9]{0,4}$')]
    [string] $MetricsAddress = '',

    [Parameter(ParameterSetName = 'Install')]
    [switch] $AllowUnencryptedSmb,

    [Parameter(ParameterSetName = 'Install')]
    [switch] $AllPrivileges,

    [Parameter(ParameterSetName = 'Uninstall', Mandatory = $true)]
    [switch] $Uninstall,

    [Parameter(ParameterSetName = 'Uninstall')]
    [switch] $Purge,

    [ValidatePattern('^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$')]
    [string] $ServiceName = 'csiproxy',

    [ValidateNotNullOrEmpty()]
    [string] $BackupDirectory = (Join-Path $env:ProgramData 'Pipeguard\backup')
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

# One question is asked before the one step that changes something, not one for each cmdlet: those say -Confirm:$false.

# Programs are named by their full path: a search would also look where others may write.
$ScProgram = Join-Path ([Environment]::SystemDirectory) 'sc.exe'
$InstalledProgram = Join-Path $env:ProgramFiles 'Pipeguard\proxy.exe'

# Quotes one argument as CommandLineToArgvW takes it apart: backslashes count only before a quote. Windows PowerShell 5.1
# gets this wrong by itself.
function ConvertTo-QuotedArgument {
    param([Parameter(Mandatory = $true)] [AllowEmptyString()] [string] $Value)

    if ($Value -match '^[^\s"]+\z') {
        return $Value
    }
    $text = [regex]::Replace($Value, '(\\*)"', '$1$1\"')
    $text = [regex]::Replace($text, '(\\+)\z', '$1$1')
    return '"' + $text + '"'
}

# Runs a program without a shell. Returns its exit code and what it wrote; a failure is the caller's to judge.
function Invoke-Program {
    param(
        [Parameter(Mandatory = $true)] [string] $Path,
        [Parameter(Mandatory = $true)] [string[]] $Arguments
    )

    $quoted = @(foreach ($argument in $Arguments) { ConvertTo-QuotedArgument -Value $argument })
    Write-Verbose ('run: ' + (ConvertTo-QuotedArgument -Value $Path) + ' ' + ($quoted -join ' '))
    $start = New-Object -TypeName System.Diagnostics.ProcessStartInfo
    $start.FileName = $Path
    $start.Arguments = $quoted -join ' '
    $start.UseShellExecute = $false
    $start.CreateNoWindow = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $process = [System.Diagnostics.Process]::Start($start)
    try {
        # Both are read at once: a program whose one pipe is full would never close the other.
        $output = $process.StandardOutput.ReadToEndAsync()
        $errors = $process.StandardError.ReadToEndAsync()
        $process.WaitForExit()
        return New-Object -TypeName PSObject -Property @{
            ExitCode = $process.ExitCode
            Text     = ($output.Result + $errors.Result).TrimEnd()
        }
    }
    finally {
        $process.Dispose()
    }
}

function Assert-Administrator {
    if ([Environment]::OSVersion.Platform -ne [PlatformID]::Win32NT) {
        throw 'This script installs a Windows service, and this is not Windows.'
    }
    if (-not [Environment]::Is64BitOperatingSystem) {
        throw 'proxy.exe is for 64-bit Windows.'
    }
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $principal = New-Object -TypeName Security.Principal.WindowsPrincipal -ArgumentList $identity
    if (-not $principal.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) {
        throw 'Run this script as an administrator: it installs a service that runs as SYSTEM.'
    }
}

# Refuses a directory that somebody else has made, who may have prepared what is in it, and a link to another.
function Assert-OwnDirectory {
    param([Parameter(Mandatory = $true)] [string] $Path)

    $item = Get-Item -LiteralPath $Path -Force
    if (-not $item.PSIsContainer -or ($item.Attributes -band [System.IO.FileAttributes]::ReparsePoint)) {
        throw "$Path is not a directory, or is a link to one."
    }
    $owner = (Get-Acl -LiteralPath $Path).GetOwner([Security.Principal.SecurityIdentifier]).Value
    $trusted = @('S-1-5-18', 'S-1-5-32-544', [Security.Principal.WindowsIdentity]::GetCurrent().User.Value)
    if ($trusted -notcontains $owner) {
        throw "$Path belongs to $owner and not to SYSTEM or administrators: look at what is in it, and remove it."
    }
}

# Makes a directory that SYSTEM and administrators alone can open. One that is there already keeps its access list.
function New-PrivateDirectory {
    param([Parameter(Mandatory = $true)] [string] $Path)

    if (Test-Path -LiteralPath $Path) {
        Assert-OwnDirectory -Path $Path
        return
    }
    $null = New-Item -ItemType Directory -Path $Path -Confirm:$false
    $access = New-Object -TypeName System.Security.AccessControl.DirectorySecurity
    $access.SetAccessRuleProtection($true, $false)
    $administrators = New-Object -TypeName Security.Principal.SecurityIdentifier -ArgumentList 'S-1-5-32-544'
    $access.SetOwner($administrators)
    foreach ($account in @('S-1-5-18', 'S-1-5-32-544')) {
        $sid = New-Object -TypeName Security.Principal.SecurityIdentifier -ArgumentList $account
        $rule = New-Object -TypeName System.Security.AccessControl.FileSystemAccessRule -ArgumentList @(
            $sid, 'FullControl', 'ContainerInherit, ObjectInherit', 'None', 'Allow')
        $access.AddAccessRule($rule)
    }
    Set-Acl -LiteralPath $Path -AclObject $access -Confirm:$false
    # Until now it had the access list of its parent, under which others may have put something into it.
    if (@(Get-ChildItem -LiteralPath $Path -Force).Count -gt 0) {
        throw "Somebody else writes to $Path."
    }
}

# Copies the program to where nobody else can change it between the check and the start. The name cannot be foreseen.
function Copy-ToStaging {
    param([Parameter(Mandatory = $true)] [string] $Program)

    $directory = Join-Path $env:ProgramData ('Pipeguard-' + [Guid]::NewGuid().ToString('N'))
    New-PrivateDirectory -Path $directory
    $copy = Join-Path $directory 'proxy.exe'
    Copy-Item -LiteralPath $Program -Destination $copy -Confirm:$false
    return $copy
}

function Resolve-File {
    param(
        [Parameter(Mandatory = $true)] [string] $Path,
        [Parameter(Mandatory = $true)] [string] $What
    )

    if (-not (Test-Path -LiteralPath $Path -PathType Leaf)) {
        throw "There is no $What at $Path."
    }
    return (Resolve-Path -LiteralPath $Path).ProviderPath
}

function Assert-Hash {
    param(
        [Parameter(Mandatory = $true)] [string] $Path,
        [AllowEmptyString()] [string] $Want
    )

    $hash = (Get-FileHash -LiteralPath $Path -Algorithm SHA256).Hash
    if (-not $Want) {
        Write-Warning "The SHA-256 of proxy.exe was not checked (-Sha256). It is $hash."
    }
    elseif ($hash -ne $Want) {
        throw "The SHA-256 of proxy.exe is $hash, not $Want."
    }
}

# The command line of a service, or nothing if there is no such service.
function Get-ServiceCommand {
    $key = 'HKLM:\SYSTEM\CurrentControlSet\Services\' + $ServiceName
    if (-not (Test-Path -LiteralPath $key)) {
        return ''
    }
    return [string] (Get-Item -LiteralPath $key).GetValue('ImagePath', '', 'DoNotExpandEnvironmentNames')
}

# Writes down how the service is set up, and returns the file.
function Backup-Service {
    New-PrivateDirectory -Path (Split-Path -Parent $BackupDirectory)
    New-PrivateDirectory -Path $BackupDirectory
    $file = Join-Path $BackupDirectory ('{0}-{1:yyyyMMdd-HHmmss}.txt' -f $ServiceName, [DateTime]::UtcNow)
    $text = @(foreach ($question in @('qc', 'qfailure', 'qdescription', 'sdshow')) {
            $answer = Invoke-Program -Path $ScProgram -Arguments @($question, $ServiceName)
            "sc.exe $question $ServiceName"
            $answer.Text
            ''
        })
    $text += 'ImagePath'
    $text += Get-ServiceCommand
    Set-Content -LiteralPath $file -Value $text -Encoding UTF8 -Confirm:$false
    return $file
}

# Lines for cmd.exe that bring back what was there.
function Get-WayBack {
    param(
        [AllowEmptyString()] [string] $Command,
        [AllowEmptyString()] [string] $File
    )

    'To go back, in cmd.exe as an administrator:'
    if ($Command) {
        "  sc.exe stop $ServiceName"
        "  sc.exe config $ServiceName start= auto binPath= " + (ConvertTo-QuotedArgument -Value $Command)
        "  sc.exe start $ServiceName"
        "How it was set up is in $File."
        return
    }
    "  sc.exe stop $ServiceName"
    "  sc.exe delete $ServiceName"
    'There was no such service before. csi-proxy.exe is installed with:'
    "  sc.exe create $ServiceName start= auto binPath= " +
    '"C:\path\to\csi-proxy.exe -windows-service -log_file=C:\etc\kubernetes\logs\csi-proxy.log -logtostderr=false"'
    "  sc.exe failure $ServiceName reset= 0 actions= restart/10000"
    "  sc.exe start $ServiceName"
}

# Runs proxy.exe and shows what it says. A failure ends the script.
function Invoke-Proxy {
    param(
        [Parameter(Mandatory = $true)] [string] $Program,
        [Parameter(Mandatory = $true)] [string[]] $Arguments
    )

    $result = Invoke-Program -Path $Program -Arguments $Arguments
    if ($result.Text) {
        Write-Output $result.Text
    }
    if ($result.ExitCode -ne 0) {
        throw ('proxy.exe {0} ended with {1}.' -f $Arguments[0], $result.ExitCode)
    }
}

function Install-Proxy {
    param(
        [Parameter(Mandatory = $true)] [string] $Program,
        [Parameter(Mandatory = $true)] [string] $ConfigFile
    )

    $arguments = @('install', '--name', $ServiceName, '--config-from', $ConfigFile)
    if ($AllPrivileges) {
        $arguments += '--all-privileges'
    }
    $arguments += @('--', "-kubelet-path=$KubeletPath")
    foreach ($directory in $WorkingDir) {
        $arguments += "-working-dir=$directory"
    }
    if ($AllowUnencryptedSmb) {
        $arguments += '-require-privacy=false'
    }
    if ($LogFile) {
        $arguments += @("-log_file=$LogFile", '-logtostderr=false')
    }
    if ($MetricsAddress) {
        $arguments += "-metrics-bind-address=$MetricsAddress"
    }
    Invoke-Proxy -Program $Program -Arguments $arguments
    Invoke-Proxy -Program $Program -Arguments @('status', '--name', $ServiceName)
    Invoke-Proxy -Program $Program -Arguments @('selftest', '--kubelet-path', $KubeletPath)
}

Assert-Administrator

if ($Uninstall) {
    $given = Resolve-File -Path $InstalledProgram -What 'installed proxy.exe'
}
else {
    $given = Resolve-File -Path $Source -What 'proxy.exe'
    $configFile = Resolve-File -Path $Config -What 'configuration'
}
$before = Get-ServiceCommand

if ($WhatIfPreference) {
    # Nothing may be written, so that the file itself is checked, which the next run checks again.
    $program = $given
}
else {
    $program = Copy-ToStaging -Program $given
}
try {
    if (-not $Uninstall) {
        Assert-Hash -Path $program -Want $Sha256
        Invoke-Proxy -Program $program -Arguments @('check-config', $configFile)
    }
    $what = if ($Uninstall) { 'remove' } else { 'install and start' }
    if (-not $PSCmdlet.ShouldProcess("service $ServiceName on $env:COMPUTERNAME", "$what $given")) {
        return
    }
    $file = ''
    if ($before) {
        $file = Backup-Service
    }
    if ($Uninstall) {
        $arguments = @('uninstall', '--name', $ServiceName)
        if ($Purge) {
            $arguments += '--purge'
        }
        Invoke-Proxy -Program $program -Arguments $arguments
        if ($file) {
            Write-Output "How the service was set up is in $file."
        }
        return
    }
    try {
        Install-Proxy -Program $program -ConfigFile $configFile
    }
    finally {
        Get-WayBack -Command $before -File $file
    }
}
finally {
    if (-not $WhatIfPreference) {
        Remove-Item -LiteralPath (Split-Path -Parent $program) -Recurse -Force -Confirm:$false
    }
}
