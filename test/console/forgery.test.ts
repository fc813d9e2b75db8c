/** Pages of other origins and of other ports, in the browser of a user who is signed in: no effect, nothing readable. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { ServerProcess } from "../support/server.ts";
import { browser } from "../support/use-browser.ts";
import { server } from "../support/use-server.ts";
import { cookie, openPage, ownerCookie, useConsole } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("forgery", () => {
  let attacker: Bun.Server<undefined>;
  let flagPath: string;

  useConsole();
  beforeAll(async () => {
    attacker = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("<title>bait</title>", { headers: { "Content-Type": "text/html" } }),
    });
    const path = `/api/projects/${server.initialized.project.id}/feature_flags/`;
    const created = await server.api(path, {
      method: "POST",
      body: { key: "target", filters: { groups: [{ properties: [], rollout_percentage: 100 }] } },
    });
    flagPath = `${path}${((await created.json()) as { id: number }).id}/`;
  });
  afterAll(() => attacker?.stop(true));

  /** A page of the attacker, in a browser that holds the cookie. The host of `127.0.0.1` shares cookies between ports. */
  const bait = async (host: string) => {
    const opened = await openPage(browser, { url: `http://${host}:${attacker.port}` });
    const [name, value] = cookie.split("=") as [string, string];
    await opened.context.addCookies([{ name, value, url: server.url, httpOnly: true, sameSite: "Strict" }]);
    await opened.page.goto("/");
    return opened;
  };
  const isOn = async () => ((await (await server.api(flagPath)).json()) as { active: boolean }).active;
  const sessionsThatWork = async () =>
    (
      await fetch(`${server.url}/api/users/@me/`, {
        headers: { Cookie: cookie, "X-Flagkeep-Console": "1" },
      })
    ).status;

  for (const [origin, host] of [
    ["another port", "127.0.0.1"],
    ["another origin", "localhost"],
  ] as const) {
    test(`${origin}: requests with the cookie read nothing and change nothing`, async () => {
      const { page, context } = await bait(host);
      const tried = await page.evaluate(
        async ({ url, flagPath }) => {
          const results: string[] = [];
          const attempt = async (what: string, path: string, init: RequestInit) => {
            try {
              const answer = await fetch(`${url}${path}`, init);
              results.push(`${what}: ${answer.type} ${answer.status} ${(await answer.text()).slice(0, 60)}`);
            } catch {
              results.push(`${what}: refused`);
            }
          };
          const body = JSON.stringify({ active: false });
          const json = { "Content-Type": "application/json" };
          const own = { "X-Flagkeep-Console": "1" };
          for (const credentials of ["include", "same-origin"] as const) {
            await attempt("read", "/api/users/@me/", { credentials });
            await attempt("read with the header", "/api/users/@me/", { credentials, headers: own });
            await attempt("flags", flagPath, { credentials, headers: own });
            await attempt("change", flagPath, { method: "PATCH", credentials, headers: json, body });
            await attempt("change with the header", flagPath, {
              method: "PATCH",
              credentials,
              headers: { ...json, ...own },
              body,
            });
            await attempt("overridden", `${flagPath}?_method=PATCH`, {
              method: "POST",
              credentials,
              headers: { "Content-Type": "text/plain" },
              body,
            });
            await attempt("sign out", "/api/session/", { method: "DELETE", credentials, headers: own });
            await attempt("end all", "/api/sessions/", { method: "DELETE", credentials, headers: own });
            await attempt("session", "/api/session/", { credentials });
          }
          await attempt("unseen", flagPath, {
            method: "POST",
            mode: "no-cors",
            credentials: "include",
            body,
          });
          return results;
        },
        { url: server.url, flagPath },
      );
      for (const result of tried) {
        // What may be read is what anybody reads: that no one is signed in.
        expect(result).not.toMatch(/owner@example\.com|"target"|: cors 2\d\d (?!\{"session":null)/);
      }
      expect(tried).toHaveLength(19);
      expect(await isOn()).toBe(true);
      expect(await sessionsThatWork()).toBe(200);
      await context.close();
    });

    test(`${origin}: forms, images and frames do nothing`, async () => {
      const { page, context } = await bait(host);
      const send = async (
        method: "get" | "post",
        path: string,
        fields: Record<string, string>,
        type: string,
      ) => {
        await page.goto("/");
        await Promise.all([
          page.waitForURL(`${server.url}/**`),
          page.evaluate(
            ([method, action, fields, type]) => {
              const form = document.createElement("form");
              Object.assign(form, { method, action, enctype: type });
              for (const [name, value] of Object.entries(fields)) {
                const input = document.createElement("input");
                Object.assign(input, { type: "hidden", name, value });
                form.append(input);
              }
              document.body.append(form);
              form.submit();
            },
            [method, `${server.url}${path}`, fields, type] as const,
          ),
        ]);
        return (await page.textContent("body")) ?? "";
      };
      const project = server.initialized.project.id;
      const plain = "text/plain";
      // A form of plain text can make a body that is JSON.
      const created = await send(
        "post",
        `/api/projects/${project}/feature_flags/`,
        { '{"key":"forged","x":"': '"}' },
        plain,
      );
      expect(created).toContain("not_authenticated");
      await send("post", "/api/session/confirm/", { password: "x" }, "application/x-www-form-urlencoded");
      await send("post", `${flagPath}`, { active: "false" }, "multipart/form-data");
      const list = (await (await server.api(`/api/projects/${project}/feature_flags/`)).json()) as {
        results: { key: string }[];
      };
      expect(list.results.map(({ key }) => key)).toEqual(["target"]);
      expect(await isOn()).toBe(true);

      await page.goto("/");
      const framed = await page.evaluate(async (url) => {
        const frame = document.createElement("iframe");
        frame.src = `${url}/console/`;
        const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
        document.body.append(frame);
        await loaded;
        try {
          return frame.contentDocument?.body.textContent ?? "closed";
        } catch {
          return "closed";
        }
      }, server.url);
      expect(framed).toBe("closed");
      expect(page.frames().every((frame) => !frame.url().includes("/console/flags"))).toBe(true);
      expect(await sessionsThatWork()).toBe(200);
      await context.close();
    });
  }

  test("two instances on one machine keep their sessions apart", async () => {
    await using other = await ServerProcess.start();
    const otherCookie = await ownerCookie(other);
    expect(otherCookie.split("=")[0]).not.toBe(cookie.split("=")[0]);
    const { page, context } = await openPage(browser, { url: server.url });
    for (const [text, url] of [
      [cookie, server.url],
      [otherCookie, other.url],
    ] as const) {
      const [name, value] = text.split("=") as [string, string];
      await context.addCookies([{ name, value, url, httpOnly: true, sameSite: "Strict" }]);
    }
    for (const url of [server.url, other.url, server.url]) {
      await page.goto(`${url}/console/settings?tab=keys`);
      await page.getByText("First key").waitFor();
    }
    await context.close();
  });
});
