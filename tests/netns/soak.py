"""The mixed load of soak.sh, inside the client's namespace.

    soak.py SECONDS SERVER_PID FOLDER WEB CTCP REMOTE...

curl through SOCKS and HTTP, and get and put, some of them killed and resumed. The client is stopped for a while or killed, sometimes
during downloads. Each content is compared by SHA-256. It exits with 1 if a content was wrong, an undisturbed transfer failed, or
descriptors or memory were leaked.
"""

import collections, hashlib, os, random, signal, subprocess, sys, time

seconds, server_pid, folder, web, ctcp, *remote = sys.argv[1:]
seconds, server_pid = float(seconds), int(server_pid)
SOCKS, HTTP = "127.0.0.1:1080", "127.0.0.1:3128"
PROXIES = {"socks": ["--proxy", f"socks5h://{SOCKS}"], "http": ["--proxy", f"http://{HTTP}"]}
# After 35 s the connections of killed programs have timed out, and their resources are free.
SETTLE_SECONDS = min(35, seconds / 4)
# What may remain when idle: a connection more or less, and memory that the C library keeps.
DESCRIPTORS_LEFT, MEGABYTES_LEFT = 12, 48

chance = random.Random(1)
counts, wrong = collections.Counter(), []
log = open(f"{folder}/soak.log", "w")
out = f"{folder}/out"
os.mkdir(out)
begin = time.monotonic()


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()


content = {name: digest(f"{folder}/www/{name}") for name in "abc"}


def run(*command):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    process.what = " ".join(os.path.basename(word) for word in command if word not in remote)
    return process


def start_client():
    started = subprocess.Popen([ctcp, "client", *remote, "--socks", SOCKS, "--http", HTTP], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        listening = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True).stdout
        if SOCKS in listening and HTTP in listening:
            return started
        time.sleep(0.02)
    sys.exit("the client does not listen")


def ended(kind, process, path, name, disturbed=False):
    """Waits for a transfer and checks it. A disturbed one may fail, but a completed one must be correct."""
    said = process.communicate()[1].decode(errors="replace").strip()
    counts[kind] += 1
    problem = None
    if process.returncode:
        if disturbed:
            counts["cut off"] += 1
        else:
            problem = f"status {process.returncode}, {said}"
    elif digest(path) != content[name]:
        problem = "wrong content"
    if problem:
        wrong.append(problem)
        print(f"{time.monotonic() - begin:.1f} s: {process.what}: {problem}", flush=True)
    if os.path.exists(path):
        os.remove(path)


def downloads():
    global client
    running = []
    for number in range(chance.choice((1, 3, 6))):
        name, kind, path = chance.choice("aab"), chance.choice(list(PROXIES)), f"{out}/{number}"
        # Without --fail an error response of the proxy would look like a content.
        running.append((kind, run("curl", "--silent", "--show-error", "--fail", "--max-time", "60", "--output", path, *PROXIES[kind], f"{web}/{name}"), path, name))
    disturbance = chance.random()
    if disturbance < 0.25:
        time.sleep(0.3)
        client.send_signal(signal.SIGSTOP)
        time.sleep(chance.choice((1, 4)))
        client.send_signal(signal.SIGCONT)
        counts["client stopped"] += 1
    elif disturbance < 0.35:
        time.sleep(chance.uniform(0, 0.5))
        restart_client()
    for transfer in running:
        ended(*transfer, disturbed=0.25 <= disturbance < 0.35)


def file_transfer(command, path, name, delay):
    """Runs a transfer; half of them are killed and restarted."""
    kind, process = command[1], run(*command)
    if chance.random() < 0.5:
        time.sleep(delay)
        process.kill()
        process.communicate()
        counts["killed"] += 1
        kind, process = f"{kind} resumed", run(*command)
    ended(kind, process, path, name)


def restart_client():
    global client
    client.kill()
    client.wait()
    counts["client killed"] += 1
    client = start_client()


def usage():
    def of(pid):
        with open(f"/proc/{pid}/status") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
        return round(resident), len(os.listdir(f"/proc/{pid}/fd"))

    server, own = of(server_pid), of(client.pid)
    return dict(server_mb=server[0], server_descriptors=server[1], client_mb=own[0], client_descriptors=own[1])


def tell(when):
    got = usage()
    print(f"{when}:", ", ".join(f"{name} {value}" for name, value in got.items()), flush=True)
    return got


client = start_client()
at_start, told_middle = tell("start"), False
while (passed := time.monotonic() - begin) < seconds:
    if not told_middle and passed > seconds / 2:
        told_middle = True
        tell("middle")
    what = chance.random()
    if what < 0.5:
        downloads()
    elif what < 0.7:
        file_transfer([ctcp, "get", "-q", *remote, "c", "-o", f"{out}/c"], f"{out}/c", "c", chance.uniform(0.5, 3))
    elif what < 0.9:
        file_transfer([ctcp, "put", "-q", *remote, f"{folder}/www/b", "up"], f"{folder}/served/up", "b", chance.uniform(0.2, 1))
    else:
        restart_client()
print("transfers:", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())), flush=True)
time.sleep(SETTLE_SECONDS)
at_end = tell("end")
for name, value in at_end.items():
    if value > at_start[name] + (MEGABYTES_LEFT if name.endswith("mb") else DESCRIPTORS_LEFT):
        wrong.append(name)
        print(f"{name}: {at_start[name]} at the start, {value} at the end")
client.kill()
print(f"{len(wrong)} wrong")
sys.exit(bool(wrong))
