-- Makes a schedule at run time, ends it, or forgets one that has ended: one step with the state of its job.
-- KEYS: 1 state, 2 control, 3 schedules, 4 payloads, 5 job, 6 passed, 7 ran
-- ARGV: 1 'make', 'end' or 'forget', 2 name, 3 handler, 4 schedule, 5 payload, 6 who, 7 version and 8 time zones, 9 most schedules,
--       10 earlier schedules kept, 11 runs and other records kept and for how many ms, 12 channel, 13 group
-- Gives: 'done' with number, instant (ms) and '1' where there was none of this name; 'same' with number and instant; 'nothing'; 'taken';
--        'full' with how many there are
local call, format, match, concat = redis.call, string.format, string.match, table.concat
local what, name, handler, schedule, payload, by = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
local at = format('%.0f', now)
-- No name has this character: the mark of one that has ended while a run of it was open.
local mark = '~' .. name
local job = ask_anew(KEYS[5], 'HMGET', KEYS[5], 'cursor', 'made', 'schedule', 'schedule_about', 'schedules', 'open', 'waiting', 'since', 'kept:passed', 'moved')
local cursor, made, in_force = job[1], job[2], job[3]
local line, carried = call('HGET', KEYS[3], name), call('HGET', KEYS[4], name)

local function number_of_change()
  local last = read_number(call('HGET', KEYS[1], 'control')) or 0
  return format('%.0f', math.max(last + 1, micros))
end

-- What is kept of one that has ended, and has no run open, goes when its newest record would be too old.
local function forget_later()
  local kept_for = match(ARGV[11], '^%d+ %d+ (%d+)$')
  for at = 5, 7 do
    call('PEXPIRE', KEYS[at], kept_for)
  end
end

local function tell(number)
  -- What people have asked is counted with it: where the state was lost, nobody counts once there is a number again.
  local asked = redis.pcall('HLEN', KEYS[2])
  call('HSET', KEYS[1], 'control', number, 'made', number, 'controlled', type(asked) == 'number' and asked or 0)
  redis.pcall('PUBLISH', ARGV[12], 'controlled ' .. ARGV[13] .. ' ' .. number)
end

if what == 'forget' then
  if (job[6] or '') ~= '' or call('HDEL', KEYS[3], mark) == 0 then
    return { 'nothing' }
  end
  call('HDEL', KEYS[4], mark)
  if in_force == '' then
    forget_later()
  end
  local made_last = call('HGET', KEYS[1], 'made')
  return { 'done', read_number(made_last) and made_last or '0', at, '' }
end

if what == 'make' then
  -- Another job's; or one had the name and goes on under another. What is a schedule is its own, whatever its job has lost.
  if not line and (job[10] or cursor and not made) then
    return { 'taken' }
  end
  local alive = line and in_force and in_force ~= ''
  local last, born, since, _, _, handled, wanted = match(line or '', '^(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|([^|]*)|(.*)$')
  if not line and call('HLEN', KEYS[3]) >= tonumber(ARGV[9]) then
    return { 'full', format('%.0f', call('HLEN', KEYS[3])) }
  end
  if alive and handled == handler and wanted == schedule and carried == payload and read_number(last) and read_instant(since) then
    return { 'same', last, since }
  end
  local number = number_of_change()
  if not alive then
    born = nil
    local from = format('%.0f', math.max(read_instant(cursor) or 0, now))
    call('HSET', KEYS[5], 'made', handler, 'since', job[8] or at, 'cursor', from, 'schedule', schedule,
      'schedule_about', concat({ at, ARGV[8], by, ARGV[7] }, '|'))
    call('HDEL', KEYS[5], 'retired', 'waiting')
    for at = 5, 7 do
      call('PERSIST', KEYS[at])
    end
    if call('HDEL', KEYS[3], mark) > 0 then
      call('HDEL', KEYS[4], mark)
    end
  elseif made ~= handler then
    call('HSET', KEYS[5], 'made', handler)
  end
  call('HSET', KEYS[3], name, concat({ number, read_number(born) and born or number, at, by, ARGV[7], handler, schedule }, '|'))
  call('HSET', KEYS[4], name, payload)
  tell(number)
  return { 'done', number, at, alive and '' or '1' }
end

if not line then
  return { 'nothing' }
end
local number = number_of_change()
call('HDEL', KEYS[3], name)
call('HDEL', KEYS[4], name)
-- What people have asked of it.
local fields = redis.pcall('HGETALL', KEYS[2])
for i = 1, #fields, 2 do
  local of_job = match(fields[i], '^r:%d+$') and match(fields[i + 1], '^%a+|([^|]+)|')
    or match(fields[i], '^e:%d+$') and match(fields[i + 1], '^([^|]*)|')
  if fields[i] == 'p:' .. name or of_job == name then
    call('HDEL', KEYS[2], fields[i])
  end
end
if made or cursor then
  made = made or match(line, '^%d+|%d+|%d+|[^|]*|[^|]*|([^|]*)|') or ''
  local waiting = read_instant(job[7]) and match(job[7], '^%d+$')
  if waiting then
    local others, kept_for = match(ARGV[11], '^%d+ (%d+) (%d+)$')
    local record = concat({ waiting, waiting, '1', 'missed.skipped', 'schedule', '0', '0', by, at, at, '', '0' }, '|')
    local said = keep_record(KEYS[6], record, tonumber(others), tonumber(kept_for), now, job[9])
    if said then
      call('HSET', KEYS[5], 'kept:passed', said)
    end
    count_up(KEYS[5], 'n:missed.skipped', 1)
  end
  local lines = {}
  if in_force and in_force ~= '' then
    lines[1] = concat({ at, job[4] or '|||', in_force }, '|')
  end
  for earlier in string.gmatch(job[5] or '', '[^\n]+') do
    if #lines < tonumber(ARGV[10]) then
      lines[#lines + 1] = earlier
    end
  end
  -- Claims that are on their way find another schedule than theirs.
  call('HSET', KEYS[5], 'made', made, 'schedule', '', 'schedules', concat(lines, '\n'), 'retired', at)
  call('HDEL', KEYS[5], 'schedule_about', 'waiting')
  if (job[6] or '') ~= '' then
    call('HSET', KEYS[3], mark, number .. match(line, '^%d*(.*)$'))
    call('HSET', KEYS[4], mark, carried or 'null')
  else
    forget_later()
  end
end
tell(number)
return { 'done', number, at, '' }
