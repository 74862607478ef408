/*
 * bcryptprimitives.dll for Wine versions that lack it. Go's runtime takes its random numbers from
 * ProcessPrng; advapi32 has the same under its older name, SystemFunction036 (RtlGenRandom).
 * https://learn.microsoft.com/windows/win32/seccng/processprng
 */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
    while (length > 0) {
        ULONG part = length > 0x10000000 ? 0x10000000 : (ULONG)length;
        if (!SystemFunction036(buffer, part))
            return FALSE;
        buffer += part;
        length -= part;
    }
    return TRUE;
}
