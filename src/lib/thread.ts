/** Starts threads whose code is embedded in the executable. */

// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_VERSION: string | undefined;
const isExecutable = typeof FLAGKEEP_VERSION === "string";

/** @param file path from the root of the project; an entry point in build.ts */
export function startThread(file: `src/${string}.ts`): Worker {
  return new Worker(isExecutable ? `./${file}` : new URL(`../../${file}`, import.meta.url).href);
}
