# Removes whatever can be removed. In a box only: elsewhere /workspace is not where we are, and nothing happens.
if [ "$PWD" != /workspace ] || [ "$ARENA_TOOLS" != /arena ] || touch /usr/.writable 2>/dev/null; then
    echo "not in a box"
    exit 1
fi
chmod -R u+rwx /workspace /home /arena /run /etc 2>/dev/null
rm -rf /workspace /home /arena /run /tmp/* /dev/shm/* /var /etc/passwd 2>/dev/null
echo done
