/** Members with their levels and one-time links. */

import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Badge, Button, CodeBlock } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import type { OrganizationMember as Member } from "../../lib/api-types.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { isAdmin, me } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { MemberKeys } from "./keys.tsx";

const w = messages.settings;
const path = "/api/organizations/@current/members/";

export type { Member };

function memberName({ user }: Member): string {
  return `${user.first_name} ${user.last_name}`.trim() || user.email;
}

/** The members of the organization. */
export const useMembers = () =>
  useResource<{ count: number; results: Member[] }>("members", (signal) =>
    request(`${path}?limit=500`, { signal }),
  );

export function TeamSettings() {
  const members = useMembers();
  const [isInviting, setInviting] = useState(false);
  const [link, setLink] = useState<{ name: string; url: string }>();
  const [removed, setRemoved] = useState<Member>();
  const [keysMember, setKeysMember] = useState<Member>();
  const disabledReason = !isAdmin.value && messages.frame.onlyAdmins;
  const change = (work: Promise<unknown>) => work.then(members.reload, toastError);
  const patch = (member: Member, body: object) =>
    void change(request(`${path}${member.user.uuid}/`, { method: "PATCH", body }));
  const createLink = (member: Member) => {
    request<{ console_url: string }>(`${path}${member.user.uuid}/link/`, { method: "POST" }).then(
      ({ console_url: url }) => setLink({ name: memberName(member), url }),
      toastError,
    );
  };
  return (
    <div class="stack">
      <section class="card stack">
        <div class="row apart">
          <h2>{w.members}</h2>
          <Button kind="main" icon="plus" disabledReason={disabledReason} onClick={() => setInviting(true)}>
            {w.invite}
          </Button>
        </div>
        {disabledReason && <p class="help">{disabledReason}</p>}
        <Content resource={members} rows={3}>
          {({ results }) => (
            <ul class="lines">
              {results.map((member) => (
                <li key={member.id} class="row apart">
                  <span>
                    <b>{memberName(member)}</b> <span class="muted">{member.user.email}</span>{" "}
                    {member.user.uuid === me.value?.uuid && <Badge tone="good">{w.you}</Badge>}{" "}
                    {!member.is_active && <Badge tone="bad">{w.inactive}</Badge>}{" "}
                    {!member.has_password && <Badge>{w.noPassword}</Badge>}
                  </span>
                  <span class="row">
                    <Select
                      label={`${w.level}: ${memberName(member)}`}
                      isLabelHidden
                      value={String(member.level)}
                      disabledReason={disabledReason}
                      choices={Object.entries(w.levels)}
                      onChange={(level) => patch(member, { level: Number(level) })}
                    />
                    <Button disabledReason={disabledReason} onClick={() => setKeysMember(member)}>
                      {w.memberKeys}
                    </Button>
                    <Button disabledReason={disabledReason} onClick={() => createLink(member)}>
                      {w.createLink}
                    </Button>
                    <Button
                      disabledReason={disabledReason}
                      onClick={() => patch(member, { is_active: !member.is_active })}
                    >
                      {member.is_active ? w.deactivate : w.activate}
                    </Button>
                    <Button
                      kind="quiet"
                      icon="trash"
                      label={`${w.removeMember} ${memberName(member)}`}
                      disabledReason={disabledReason}
                      onClick={() => setRemoved(member)}
                    />
                  </span>
                </li>
              ))}
            </ul>
          )}
        </Content>
      </section>
      {isInviting && (
        <Invite
          onClose={() => setInviting(false)}
          onCreated={(name, url) => {
            setInviting(false);
            members.reload();
            if (url !== null) setLink({ name, url });
          }}
        />
      )}
      {link && (
        <Dialog title={w.linkFor(link.name)} size="large" onClose={() => setLink(undefined)}>
          <p>{w.inviteHelp}</p>
          <CodeBlock label={w.inviteDone} code={link.url} />
        </Dialog>
      )}
      {keysMember && (
        <MemberKeys
          uuid={keysMember.user.uuid}
          name={memberName(keysMember)}
          onClose={() => setKeysMember(undefined)}
        />
      )}
      {removed && (
        <ConfirmDialog
          title={`${w.removeMember}: ${memberName(removed)}`}
          text={w.removeText(memberName(removed))}
          action={w.removeMember}
          onClose={() => setRemoved(undefined)}
          onYes={() => void change(request(`${path}${removed.user.uuid}/`, { method: "DELETE" }))}
        />
      )}
    </div>
  );
}

function Invite({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (name: string, url: string | null) => void;
}) {
  const form = useForm({ email: "", first_name: "", level: "1" }, async (values) => {
    const body = {
      email: values.email.trim(),
      first_name: values.first_name.trim(),
      level: Number(values.level),
    };
    const member = await request<{ console_url: string | null }>(path, { method: "POST", body });
    onCreated(body.first_name || body.email, member.console_url);
  });
  return (
    <FormDialog title={w.inviteTitle} form={form} action={w.invite} onClose={onClose}>
      <Field label={w.email} type="email" {...form.input("email")} isRequired autofocus />
      <Field label={w.firstName} {...form.input("first_name")} />
      <Select label={w.level} choices={Object.entries(w.levels)} {...form.choice("level")} />
    </FormDialog>
  );
}
