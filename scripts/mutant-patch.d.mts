/** The header of a patch in mutants/, and the packages that the patch changes. */
export interface MutantPatch {
  /** The broken promise. */
  readonly breaks: string;
  /** The test files that should detect the bug; none if the explorer or the simulation should. */
  readonly tests: readonly string[];
  /** Why the mutant survives; absent if it should be detected. */
  readonly survives?: string;
  /** Why the mutant makes its search hang; absent if it does not. */
  readonly hangs?: string;
  /** The changed packages, such as "libs/rpc". */
  readonly folders: readonly string[];
}

/** Read the header of a patch. */
export function readPatch(text: string): MutantPatch;

/** Select the items of a shard such as "2/4", or all items if `shard` is empty. Throws if it is not a shard. */
export function takeShard<T>(items: readonly T[], shard: string): readonly T[];
