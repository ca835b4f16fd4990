/** Eight H100 as `NVIDIA_FACTS_ARGS` prints them. */
export const H100_FACTS = `0, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e60, 535.161.08, 00000000:1B:00.0, 81559
1, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e61, 535.161.08, 00000000:43:00.0, 81559
2, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e62, 535.161.08, 00000000:52:00.0, 81559
3, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e63, 535.161.08, 00000000:61:00.0, 81559
4, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e64, 535.161.08, 00000000:9D:00.0, 81559
5, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e65, 535.161.08, 00000000:C3:00.0, 81559
6, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e66, 535.161.08, 00000000:D1:00.0, 81559
7, NVIDIA H100 80GB HBM3, GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e67, 535.161.08, 00000000:DF:00.0, 81559
`;

/** The same machine as `NVIDIA_USAGE_ARGS` prints it while six GPUs are busy. */
export const H100_USAGE = `0, 97, 78012, 81559, 71
1, 98, 78012, 81559, 66
2, 96, 78012, 81559, 69
3, 100, 78012, 81559, 73
4, 97, 78012, 81559, 70
5, 95, 78012, 81559, 65
6, 0, 4, 81559, 34
7, 0, 4, 81559, 33
`;

/** An A100 that is split into instances, seen from an unprivileged container. */
export const MIG_USAGE = `0, [N/A], [Insufficient Permissions], [Insufficient Permissions], 47
1, [N/A], 18291, 40960, 39
`;

/**
 * A GPU that has failed, and one that works. The second message appears after the failed GPU has fallen off the bus.
 */
export const FAILING_FACTS = `Unable to determine the device handle for GPU0000:86:00.0: Unknown Error
0, Tesla V100-SXM2-32GB, GPU-9bd0e64c-5f0a-7c6e-8a0c-4f6b2b1c9a11, 470.82.01, 00000000:15:00.0, 32510
1, Tesla V100-SXM2-32GB, GPU-9bd0e64c-5f0a-7c6e-8a0c-4f6b2b1c9a12, 470.82.01, 00000000:16:00.0, [GPU requires reset]
`;

/** Three GPUs. Two have failed, and the driver reports no id for them. */
export const BROKEN_FACTS = `0, Tesla V100-SXM2-32GB, GPU-9bd0e64c-5f0a-7c6e-8a0c-4f6b2b1c9a11, 470.82.01, 00000000:15:00.0, 32510, [N/A]
1, Tesla V100-SXM2-32GB, ERR!, 470.82.01, 00000000:16:00.0, ERR!, [N/A]
2, [Unknown Error], [Unknown Error], 470.82.01, 00000000:17:00.0, [Unknown Error], [N/A]
`;

/** Two A100. The first is split into instances. */
export const MIG_FACTS = `0, NVIDIA A100-SXM4-40GB, GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 535.161.08, 00000000:07:00.0, 40960, Enabled
1, NVIDIA A100-SXM4-40GB, GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a78, 535.161.08, 00000000:0F:00.0, 40960, Disabled
`;

/** A machine whose kernel module is not loaded; nvidia-smi exits with 9. */
export const NO_DRIVER = `NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.

`;

/** A machine without a GPU; nvidia-smi exits with 6. */
export const NO_DEVICES = "No devices were found\n";

/** Two MI250 as `ROCM_FACTS_ARGS` prints them with ROCm 5. */
export const MI250_FACTS = `{"card0": {"Unique ID": "0x719d230578348e8c", "VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "10960896", "Card series": "AMD INSTINCT MI250 (MCM) OAM AC MBA", "Card model": "0x0b0c", "Card vendor": "Advanced Micro Devices, Inc. [AMD/ATI]", "Card SKU": "D65209", "PCI Bus": "0000:29:00.0"}, "card1": {"Unique ID": "0x719d230578348e8d", "VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "10960896", "Card series": "AMD INSTINCT MI250 (MCM) OAM AC MBA", "Card model": "0x0b0c", "Card vendor": "Advanced Micro Devices, Inc. [AMD/ATI]", "Card SKU": "D65209", "PCI Bus": "0000:2C:00.0"}, "system": {"Driver version": "5.16.9.22.20"}}
`;

/** A workstation with ROCm 6: different capitalization, a leading warning, an integrated GPU without a name. */
export const RADEON_FACTS = `

WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

{"card0": {"Unique ID": "0x5ea5d4b1c1b3f0a2", "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "794341376", "Card Series": "Radeon RX 7900 XTX", "Card Model": "0x744c", "Card Vendor": "Advanced Micro Devices, Inc. [AMD/ATI]", "Card SKU": "D7030202", "PCI Bus": "0000:03:00.0", "GFX Version": "gfx1100"}, "card1": {"Unique ID": "N/A", "VRAM Total Memory (B)": "2147483648", "VRAM Total Used Memory (B)": "26124288", "Card Series": "N/A", "Card Model": "0x13c0", "Card SKU": "RAPHAEL", "PCI Bus": "0000:47:00.0", "GFX Version": "gfx1036"}, "system": {"Driver version": "6.7.0"}}
`;

/** The workstation as `ROCM_USAGE_ARGS` prints it. */
export const RADEON_USAGE = `{"card0": {"Temperature (Sensor edge) (C)": "65.0", "Temperature (Sensor junction) (C)": "74.0", "Temperature (Sensor memory) (C)": "74.0", "GPU use (%)": "18", "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "3478065152"}, "card1": {"Temperature (Sensor edge) (C)": "50.0", "GPU use (%)": "0", "VRAM Total Memory (B)": "2147483648", "VRAM Total Used Memory (B)": "26124288"}}
`;
