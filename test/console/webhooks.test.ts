/** Settings, webhooks: created with a confirmed password, tested, listed with deliveries, changed and deleted. */

import { afterAll, describe, expect, test } from "bun:test";
import { isSigned, Receiver } from "../operate/webhooks/support.ts";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser, password } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("webhooks", () => {
  const receiver = new Receiver();
  afterAll(() => receiver[Symbol.dispose]());
  const owner = ownersBrowser(["--webhook-allowed-networks", "127.0.0.1"]);

  test("from the form to a delivery", async () => {
    const { page, context, errors } = await owner.open(403, 400);
    await page.goto("/console/settings?tab=webhooks");
    await page.getByText("No webhooks yet.").waitFor();
    await page.getByRole("button", { name: "New webhook" }).click();
    const form = page.getByRole("dialog", { name: "New webhook" });
    await form.getByLabel("URL").fill("http://10.0.0.1/");
    await form.getByRole("button", { name: "Create webhook" }).click();
    const asked = page.getByRole("dialog", { name: "Confirm your password" });
    await asked.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await form.getByText("10.0.0.1 is an address of this machine").waitFor();
    expect(await form.getByLabel("URL").getAttribute("aria-invalid")).toBe("true");
    await form.getByLabel("URL").fill(`${receiver.url}/hook`);
    await form.getByLabel("Name").fill("Releases");
    expect(await axeFindings(page)).toEqual([]);
    await form.getByRole("button", { name: "Create webhook" }).click();
    const shown = page.getByRole("dialog", { name: "Secret of the webhook" });
    const secret = (await shown.locator("code, pre").first().textContent())!.trim();
    expect(secret).toStartWith("whsec_");
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: "Send test: Releases" }).click();
    await page.getByText("Test delivered: status 200.").waitFor();
    expect(receiver.received.length).toBe(1);
    expect(isSigned(receiver.received[0]!, secret)).toBe(true);
    receiver.answer = () => new Response("no", { status: 500 });
    await page.getByRole("button", { name: "Send test: Releases" }).click();
    await page.getByText("Test not delivered: The receiver answered 500.").waitFor();
    expect(await axeFindings(page)).toEqual([]);

    await page.getByRole("button", { name: "Deliveries: Releases" }).click();
    const list = page.getByRole("dialog", { name: "Deliveries to Releases" });
    await list.getByText("Pending").waitFor();
    await list.getByText("Delivered", { exact: true }).waitFor();
    await list.getByText(/^1 attempt · status 200 · \d+ ms$/).waitFor();
    await list.getByText(/^1 attempt · \d+ ms · The receiver answered 500\./).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: "Edit Releases" }).click();
    const edit = page.getByRole("dialog", { name: "Edit Releases" });
    await edit.getByLabel("Weekly summary").check();
    await edit.getByLabel("Format").selectOption("custom");
    await edit.getByLabel("Template (JSON)").fill("{");
    await edit.getByRole("button", { name: "Save" }).click();
    await edit.getByText("The template is not a JSON object.").waitFor();
    await edit.getByLabel("Template (JSON)").fill('{"text": "{{text}}"}');
    await edit.getByRole("button", { name: "Save" }).click();
    await page.getByText("Weekly summary").waitFor();
    await page.getByRole("switch", { name: "On: Releases" }).click();
    await page.getByRole("switch", { name: "On: Releases", checked: false }).waitFor();
    const stored = await (await owner.server.api("/api/projects/@current/webhooks/1/")).json();
    expect(stored).toMatchObject({ active: false, format: "custom", template: { text: "{{text}}" } });

    await page.getByRole("button", { name: "Delete Releases" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete webhook" }).click();
    await page.getByText("No webhooks yet.").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  }, 60_000);
});
