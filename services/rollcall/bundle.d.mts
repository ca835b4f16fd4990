/** See bundle.mjs. */
export function bundle(folder: string): Promise<string>;
