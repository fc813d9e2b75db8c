import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { executable, flagkeep, initializedDirectory } from "../support/server.ts";

/** What bash offers for a line. */
async function bashOffers(...words: string[]): Promise<string[]> {
  const script = (await flagkeep(["completions", "bash"])).stdout;
  const line = `COMP_WORDS=('${executable}' ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}`;
  const child = Bun.spawn(
    ["bash", "-c", `${script}\n${line}; _flagkeep; printf '%s\\n' "\${COMPREPLY[@]}"`],
    {
      stdout: "pipe",
    },
  );
  return (await new Response(child.stdout).text()).split("\n").filter(Boolean);
}

test("bash completes commands at every depth, and options", async () => {
  expect(await bashOffers("ke")).toEqual(["keys"]);
  expect(await bashOffers("keys", "r")).toEqual(["revoke", "roll"]);
  expect(await bashOffers("roles", "add-member", "--")).toEqual([
    "--data-dir",
    "--json",
    "--organization",
    "--url",
    "--key",
    "--postgres-url",
    "--postgres-password-file",
    "--help",
  ]);
  expect(await bashOffers("status", "--data-dir", "/x", "--js")).toEqual(["--json"]);
  expect(await bashOffers("users", "create", "--level", "")).toEqual(["member", "admin", "owner"]);
  expect(await bashOffers("completions", "z")).toEqual(["zsh"]);
  // A folder is wanted: bash continues with its own names of files.
  expect(await bashOffers("status", "--data-dir", "")).toEqual([]);
});

test("bash completes the keys of flags, those of the data directory that the line names", async () => {
  const { dataDir } = await initializedDirectory();
  for (const key of ["new-checkout", "new-search", "old"]) {
    await flagkeep(["flags", "create", key, "--data-dir", dataDir]);
  }
  await flagkeep(["flags", "delete", "old", "--data-dir", dataDir]);
  const here = ["--data-dir", dataDir];
  expect(await bashOffers("flags", "get", ...here, "new-")).toEqual(["new-checkout", "new-search"]);
  expect(await bashOffers("flags", "delete", ...here, "new-search", "new-c")).toEqual(["new-checkout"]);
  expect(await bashOffers("flags", "restore", ...here, "o")).toEqual(["old"]);
  // A new key is no one's yet, and options are no keys.
  expect(await bashOffers("flags", "create", ...here, "new-")).toEqual([]);
  expect(await bashOffers("flags", "set", ...here, "--o")).toEqual(["--on", "--off"]);
  rmSync(dataDir, { recursive: true });
});

for (const shell of ["bash", "zsh", "fish"]) {
  test(`the script for ${shell} is whole`, async () => {
    const { stdout, stderr, code } = await flagkeep(["completions", shell]);
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    for (const word of ["projects", "rotate-secret", "data-dir", "flags-access"])
      expect(stdout).toContain(word);
    // Only bash is everywhere; the others are asked where they are.
    if (Bun.which(shell) === null) return;
    const child = Bun.spawn([shell, "-n"], { stdin: new Blob([stdout]), stderr: "pipe" });
    expect(await new Response(child.stderr).text()).toBe("");
    expect(await child.exited).toBe(0);
  });
}

test("commands that need no data directory accept one", async () => {
  for (const args of [["version"], ["completions", "bash"]]) {
    expect(await flagkeep([...args, "--data-dir", "/nowhere"])).toMatchObject({ stderr: "", code: 0 });
  }
});

test("an unknown shell is a wrong call", async () => {
  const { stdout, stderr, code } = await flagkeep(["completions", "tcsh"]);
  expect({ stdout, code }).toEqual({ stdout: "", code: 2 });
  expect(stderr).toContain("bash, zsh, fish");
});
