/** The first processor of a dual-socket server with Intel Xeon Platinum 8480C, from /proc/cpuinfo. */
export const XEON_CPUINFO = `processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480C
stepping	: 8
microcode	: 0x2b0004b1
cpu MHz		: 3800.000
cache size	: 107520 KB
physical id	: 0
siblings	: 112
core id		: 0
cpu cores	: 56
apicid		: 0
fpu		: yes
cpuid level	: 32
wp		: yes
flags		: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush dts acpi mmx fxsr sse sse2 ss ht tm pbe syscall nx pdpe1gb rdtscp lm constant_tsc art arch_perfmon pebs bts rep_good nopl xtopology nonstop_tsc cpuid aperfmperf tsc_known_freq pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 sdbg fma cx16
vmx flags	: vnmi preemption_timer posted_intr invvpid ept_x_only ept_ad ept_1gb flexpriority apicv
bugs		: spectre_v1 spectre_v2 spec_store_bypass swapgs eibrs_pbrsb
bogomips	: 4000.00
clflush size	: 64
address sizes	: 46 bits physical, 57 bits virtual
power management:

processor	: 1
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R) Platinum 8480C
`;

/** A virtual machine whose hypervisor does not pass on the virtualization extension. */
export const VIRTUAL_CPUINFO = `processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 1
model name	: AMD EPYC 7R13 Processor
cpu MHz		: 3649.942
physical id	: 0
siblings	: 2
core id		: 0
cpu cores	: 1
flags		: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ht syscall nx mmxext fxsr_opt pdpe1gb rdtscp lm constant_tsc rep_good nopl nonstop_tsc cpuid extd_apicid aperfmperf tsc_known_freq pni hypervisor lahf_lm
bogomips	: 5299.99
`;

/** A laptop with AMD Ryzen; the model name is padded by the processor. */
export const LAPTOP_CPUINFO = `processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 68
model name	: AMD Ryzen 7 PRO 6850U  with  Radeon Graphics         
cpu MHz		: 1397.325
physical id	: 0
siblings	: 16
core id		: 0
cpu cores	: 8
flags		: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat svm extapic cr8_legacy
`;

/** Raspberry Pi 4: no model name, no flags, and the board at the end. */
export const RASPBERRY_CPUINFO = `processor	: 0
BogoMIPS	: 108.00
Features	: fp asimd evtstrm crc32 cpuid
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x0
CPU part	: 0xd08
CPU revision	: 3

processor	: 1
BogoMIPS	: 108.00
CPU implementer	: 0x41
CPU part	: 0xd08

Hardware	: BCM2835
Revision	: c03114
Serial		: 10000000abcdef01
Model		: Raspberry Pi 4 Model B Rev 1.4
`;

/** The first processor of a POWER9 server. */
export const POWER_CPUINFO = `processor	: 0
cpu		: POWER9, altivec supported
clock		: 3783.000000MHz
revision	: 2.2 (pvr 004e 1202)
`;
