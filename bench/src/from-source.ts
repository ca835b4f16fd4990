/**
 * The extension of this package's files as they run: `.js` in dist; `.ts` in tests, where Node.js has been told how to load
 * sources, and what is started from here is told the same.
 */
export const EXTENSION = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
