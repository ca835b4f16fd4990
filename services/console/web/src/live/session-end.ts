import type { CallError } from "./call-error.ts";
import { Observable } from "./observable.ts";

/** Why the server no longer takes the page's session; null while it does. The page then asks to sign in. */
export const sessionEnded = new Observable<CallError | null>(null);
