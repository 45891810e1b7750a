"""The public entities of a header with their docstrings, as Markdown. All headers are formatted by tests/format, so they are parsed
line by line: a comment of `///` lines directly precedes what it describes."""
import html
import re

NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]*) ?\{(?: *//.*)?$")

def declaration(lines, at):
    """The lines of the declaration that begins there, up to its body, its value or its semicolon; and the index after it."""
    out = []
    for i in range(at, len(lines)):
        line = lines[i]
        code = line.split("  //")[0].rstrip()
        out.append(code)
        if code.endswith((";", "{")) or code.endswith("{}") or (code.endswith("}") and "{" in code):
            return out, i + 1
    return out, len(lines)


def name_of(code):
    """The name that a declaration introduces."""
    text = [line.strip() for line in code if not line.strip().startswith(("template", "requires"))]
    joined = re.sub(r"\[\[[^\]]*\]\] ?", "", " ".join(text))
    typed = re.match(r"(?:inline constexpr |inline |constexpr )?(?:struct|class|enum class|enum|concept|using|union) (?:alignas\(\w+\) )?(\w+)", joined)
    if typed:
        return typed[1]
    operator = re.search(r"operator ?(\(\)|\[\]|[^\s\w(]+|\w+)\(", joined)
    if operator:
        return f"operator{operator[1]}"
    called = re.search(r"(~?\w+)(?:<[^()]*>)?\(", joined)
    if called and not re.search(r"=[^=].*\b" + re.escape(called[1]) + r"\(", joined):
        return called[1]
    value = re.search(r"(\w+)(?:\[\w*\])?\s*(?:=|\{|;|$)", joined)
    return value[1] if value else ""


def signature(code):
    """A declaration without its body."""
    text = "\n".join(code)
    text = re.sub(r"\s*\{\}?$", ";" if "(" in code[-1] or len(code) > 1 else "", text)
    text = re.sub(r"\s*\{[^{}]*\}$", ";", text)
    return re.sub(r"^\s*\[\[[^\]]*\]\] ?", "", text, flags=re.M)


def prose(lines):
    """A docstring as HTML that keeps line breaks, because many docstrings have columns."""
    text = html.escape("\n".join(lines), quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"(https?://[^\s)]+[^\s).,:])", r'<a href="\1">\1</a>', text)
    return f'<div class="docstring">{text}</div>'


def members(body, is_struct):
    """(declaration, docstring) of the documented public members of a class."""
    public, doc, i = is_struct, [], 0
    while i < len(body):
        line = body[i]
        if line.strip() in ("public:", "private:", "protected:"):
            public = line.strip() == "public:"
        if line.startswith("  ///"):
            doc.append(line[5:].removeprefix(" "))
            i += 1
            continue
        if doc and line.startswith("  ") and not line.startswith("   "):
            code, i = declaration(body, i)
            if public:
                yield [c.removeprefix("  ") for c in code], doc
            doc = []
            continue
        doc = []
        i += 1


def data_of(body, is_struct):
    """The lines of the public data members of a class: the settings of an optimizer, the fields of a state."""
    public = is_struct
    for line in body:
        if line.strip() in ("public:", "private:", "protected:"):
            public = line.strip() == "public:"
        code = line.split("//")[0].rstrip()
        is_member = re.match(r"  [\w:<]", line) and code.endswith(";") and "(" not in re.split(r"[={]", code)[0]
        if public and is_member and not re.match(r"  (using|static|friend|template|return|typedef)\b", line) and not re.search(r"\w_(\{|;| =)", code):
            yield line


def is_only_data(body):
    code = [line.split("//")[0] for line in body]
    return len(body) <= 60 and not any("(" in line and "=" not in line for line in code) and not any(":" == line.strip()[-1:] for line in code)


def entities(text):
    """(namespace, name, signature, docstring, [(signature, docstring) of members]) of each public entity."""
    lines = text.split("\n")
    spaces, doc, i = [], [], 0
    while i < len(lines):
        line = lines[i]
        if opened := NAMESPACE.match(line):
            spaces.append(opened[1])
            doc, i = [], i + 1
            continue
        if line.startswith("}") and "namespace" in line:
            del spaces[-1:]
        if line.startswith("///"):
            doc.append(line[3:].removeprefix(" "))
            i += 1
            continue
        inside = "::".join(spaces)
        starts = bool(re.match(r"[A-Za-z\[]", line))
        if starts and spaces and "detail" not in inside and "" not in spaces:
            code, after = declaration(lines, i)
            body, end = [], after
            if code[-1].endswith("{"):
                while end < len(lines) and not lines[end].startswith("}"):
                    body.append(lines[end])
                    end += 1
                    if re.match(r"    .*[^;{]\};$", lines[end - 1]) and not re.match(r"(struct|class|template|enum)", code[0]):
                        break  # the value of a variable, on a line of its own
            kind = re.search(r"^(struct|class|enum)\b", re.sub(r"\[\[[^\]]*\]\] ?", "", code[-1] if not code[0].startswith(("struct", "class", "enum")) else code[0]))
            name = name_of(code)
            options = kind and kind[1] == "struct" and name.endswith(("_options", "_settings", "_limits"))
            if doc or options:
                shown, inner = signature(code), []
                if kind and body and (kind[1] == "enum" or options or is_only_data(body)):
                    shown = "\n".join([*code, *body, "};"])
                elif kind:
                    if data := list(data_of(body, kind[1] == "struct")):
                        shown = "\n".join([*code, *data, "};"])
                    inner = [(signature(c), d) for c, d in members(body, kind[1] == "struct")]
                yield inside, name, shown, doc, inner
            doc, i = [], max(end, i + 1)
            continue
        doc = []
        i += 1


def page_of_header(name, text):
    """A section of an API page; empty if the header has no public entities."""
    found = list(entities(text))
    if not found:
        return ""
    about = []
    for line in text.split("\n"):
        if not line.startswith("//") or line.startswith(("// needs:", "///")):
            break
        about.append(line[2:].strip())
    out = [f"## {name}\n", f'<div class="docstring">{html.escape(" ".join(about), quote=False)}</div>\n']
    for space, entity, shown, doc, inner in found:
        out += [f"### {space.removeprefix('strata').removeprefix('::')}{'::' if '::' in space else ''}{entity}\n", f"```cpp\n{shown}\n```\n"]
        if doc:
            out.append(prose(doc) + "\n")
        for member, about_member in inner:
            out += [f"```cpp\n{member}\n```\n", prose(about_member) + "\n"]
    return "\n".join(out) + "\n"
